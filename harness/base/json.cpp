#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/errors.h"
#include "base/printable.h"

namespace peakbench {
namespace {

using nlohmann::json;

std::string line_and_column(std::string_view text, std::size_t byte) {
  const auto before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

// Brackets outside strings. Whether they match is the parser's to say.
void check_levels(std::string_view text) {
  int levels = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++levels <= kMostJsonLevels) continue;
      throw RunFileError(fmt::format("more than {} levels of lists and objects, at {}",
                                     kMostJsonLevels, line_and_column(text, at + 1)));
    } else if (c == ']' || c == '}') {
      --levels;
    }
  }
}

// Without the library's own "[json.exception.parse_error.101] parse error at line 1, column 2: ".
std::string words_of(const json::exception& error) {
  constexpr std::size_t kShown = 200;
  const std::string_view text = error.what();
  const auto end = text.find(": ");
  return std::string(text.substr(end == std::string_view::npos ? 0 : end + 2).substr(0, kShown));
}

// Follows the parser again to where it stopped, and knows the field there.
class Failure : public nlohmann::json_sax<json> {
 public:
  std::size_t byte = 0;
  std::string token;
  std::string why;      // in the library's words, without the place
  bool number = false;  // one that is out of range

  std::string pointer() const {
    std::string text;
    for (const auto& level : levels_) {
      text += level.list ? fmt::format("/{}", level.place)
                         : (json::json_pointer() / level.key).to_string();
    }
    return text;
  }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    levels_.back().key = key;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last,
                   const json::exception& error) override {
    byte = position;
    token = last;
    why = words_of(error);
    number = dynamic_cast<const json::out_of_range*>(&error) != nullptr;
    return false;
  }

 private:
  struct Level {
    bool list;
    std::size_t place = 0;
    std::string key;
  };

  bool value() {
    if (!levels_.empty() && levels_.back().list) ++levels_.back().place;
    return true;
  }
  bool open(bool list) {
    levels_.push_back({list, 0, ""});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }

  std::vector<Level> levels_;
};

[[noreturn]] void fail(std::string_view text) {
  constexpr std::size_t kShown = 40;
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) throw RunFileError("the file is empty");
  Failure failure;
  json::sax_parse(text, &failure);
  const auto pointer = failure.pointer();
  const auto place = line_and_column(text, failure.byte) + (pointer.empty() ? "" : ", " + pointer);
  if (failure.number) {
    throw RunFileError(fmt::format("{}: expected a number that fits 64 bits, got {}", place,
                                   failure.token.substr(0, kShown)));
  }
  if (failure.byte > last + 1) {
    throw RunFileError(
        fmt::format("cut short: the JSON ends unfinished after {} bytes", text.size()));
  }
  throw RunFileError(fmt::format("not JSON: {}: {}", place, failure.why));
}

}  // namespace

json parse_json(std::string_view text, const json::parser_callback_t& seen) {
  check_levels(text);
  try {
    return json::parse(text, seen);
  } catch (const json::exception&) {
    fail(text);
  }
}

void bound_texts(nlohmann::json& json) {
  if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.size() > kLongestText) text = bounded(text);
  } else if (json.is_structured()) {
    for (auto& item : json) bound_texts(item);
  }
}

namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& value) { return json_line(value); }

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : dumped(value);
}

std::string cell_of(const Json& value) {
  if (!value.is_array()) return plain(value);
  if (std::any_of(value.begin(), value.end(), [](const Json& one) { return one.is_structured(); }))
    return dumped(value);
  std::string text;
  for (const auto& one : value) text += (text.empty() ? "" : " ") + plain(one);
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

// One row at a time, so that a column has a place before a later row has a value for it.
class Columns {
 public:
  void add(const std::string& name, const Json& value, std::vector<std::string>& row) {
    if (value.is_object()) {
      for (const auto& [key, inner] : value.items())
        add(name.empty() ? key : name + "." + key, inner, row);
      return;
    }
    const auto [found, is_new] = places_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    if (row.size() <= found->second) row.resize(found->second + 1);
    row[found->second] = cell_of(value);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> names_;
};

std::string line_of(const std::vector<std::string>& cells, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < columns; ++i)
    line += (i == 0 ? "" : ",") + (i < cells.size() ? quoted(cells[i]) : "");
  return line + "\n";
}

}  // namespace

std::string csv_text(const Json& rows) {
  Columns columns;
  std::vector<std::vector<std::string>> cells;
  for (const auto& row : rows) columns.add("", row, cells.emplace_back());
  if (cells.empty()) return "";
  std::string text = line_of(columns.names(), columns.names().size());
  for (const auto& row : cells) text += line_of(row, columns.names().size());
  return text;
}

}  // namespace peakbench
