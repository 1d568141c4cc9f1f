#include "planning/suite_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/errors.h"
#include "base/nearest.h"

namespace peakbench::planning {
namespace {

// Counts dots outside strings and comments, from one sign that no key holds to the next. A value
// has one dot at most, so it need not be told from a key.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::size_t> line_of_endless_key() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        skip_to_line_end();
        continue;
      }
      if (c == '.' && ++dots_ >= kMostKeyParts) return line();
      if (c == '\n' || c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}')
        dots_ = 0;
      ++at_;
    }
    return std::nullopt;
  }

 private:
  void skip_to_line_end() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  bool is_next(std::string_view part) const { return text_.substr(at_).starts_with(part); }

  // In quotes of one kind, single or triple. Only the double ones know escapes; a string in single
  // quotes ends with its line at the latest, as the parser then ends with an error.
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool lines = is_next(triple);
    at_ += lines ? 3 : 1;
    while (at_ < text_.size()) {
      if (quote == '"' && text_[at_] == '\\') {
        at_ += 2;
      } else if (lines && is_next(triple)) {
        at_ += 3;
        for (int i = 0; i < 2 && is_next(triple.substr(0, 1)); ++i) ++at_;  // """a"""""
        return;
      } else if (!lines && (text_[at_] == quote || text_[at_] == '\n')) {
        at_ += text_[at_] == quote ? 1 : 0;
        return;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, text_.size());
  }

  std::size_t line() const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(at_);
    return 1 + static_cast<std::size_t>(std::count(text_.begin(), end, '\n'));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int dots_ = 0;
};

}  // namespace

std::optional<std::size_t> line_of_endless_key(std::string_view text) {
  return Scanner(text).line_of_endless_key();
}

namespace {

std::string kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return fmt::format("the string \"{}\"", node.as_string()->get());
    case toml::node_type::integer:
      return fmt::format("{}", node.as_integer()->get());
    case toml::node_type::floating_point:
      return fmt::format("{}", node.as_floating_point()->get());
    case toml::node_type::boolean:
      return node.as_boolean()->get() ? "true" : "false";
    default:
      return "a date or time";
  }
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (node.is_integer() || node.is_floating_point() || node.is_boolean()) return kind_of(node);
  return std::nullopt;
}

}  // namespace

std::string place_text(const std::string& file, const toml::source_position& position) {
  return fmt::format("{}:{}:{}", file, position.line, position.column);
}

std::string SuiteTable::place(const toml::node& node) const {
  return place_text(file_, node.source().begin);
}

void SuiteTable::only(const std::vector<std::string>& known) const {
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (std::ranges::count(known, name) != 0) continue;
    throw ConfigError(fmt::format("{}: unknown key \"{}\"{}", place_text(file_, key.source().begin),
                                  name, suggestion(name, known)));
  }
}

std::string SuiteTable::where(const std::string& key) const {
  const auto* node = table_.get(key);
  return node ? place(*node) : place(table_);
}

void SuiteTable::wrong_type(const toml::node& node, const std::string& key,
                            const char* expected) const {
  throw ConfigError(
      fmt::format("{}: {}: expected {}, got {}", place(node), key, expected, kind_of(node)));
}

void SuiteTable::fail(const std::string& key, const std::string& problem) const {
  throw ConfigError(fmt::format("{}: {}: {}", where(key), key, problem));
}

void SuiteTable::fail_here(const std::string& problem) const {
  throw ConfigError(fmt::format("{}: {}", place(table_), problem));
}

std::optional<std::string> SuiteTable::text(const std::string& key) const {
  const auto* node = table_.get(key);
  if (!node) return std::nullopt;
  if (!node->is_string()) wrong_type(*node, key, "a string");
  return node->as_string()->get();
}

std::optional<std::int64_t> SuiteTable::integer(const std::string& key,
                                                const Range<std::int64_t>& range) const {
  const auto* node = table_.get(key);
  if (!node) return std::nullopt;
  if (!node->is_integer() || !range.holds(node->as_integer()->get()))
    wrong_type(*node, key, words_of(range).c_str());
  return node->as_integer()->get();
}

// TOML has literals for infinity and for what is not a number.
std::optional<double> SuiteTable::number(const std::string& key, const Range<double>& range) const {
  const auto* node = table_.get(key);
  if (!node) return std::nullopt;
  const auto value = node->value<double>();
  if (!node->is_number() || !range.holds(*value)) wrong_type(*node, key, words_of(range).c_str());
  return value;
}

const toml::array* SuiteTable::list(const std::string& key, const char* expected) const {
  const auto* node = table_.get(key);
  if (!node) return nullptr;
  if (!node->is_array()) wrong_type(*node, key, expected);
  return node->as_array();
}

std::vector<Placed> SuiteTable::texts(const std::string& key) const {
  std::vector<Placed> texts;
  const auto* items = list(key, "a list of strings");
  if (!items) return texts;
  for (const auto& item : *items) {
    if (!item.is_string()) wrong_type(item, key, "a string");
    texts.push_back({item.as_string()->get(), place(item)});
  }
  return texts;
}

std::vector<Placed> SuiteTable::integers(const std::string& key) const {
  std::vector<Placed> integers;
  const auto* items = list(key, "a list of integers");
  if (!items) return integers;
  for (const auto& item : *items) {
    if (!item.is_integer()) wrong_type(item, key, "an integer");
    integers.push_back({std::to_string(item.as_integer()->get()), place(item)});
  }
  return integers;
}

std::vector<PlacedValue> SuiteTable::values(const std::string& key) const {
  std::vector<PlacedValue> values;
  const auto* items = list(key, "a list of values");
  if (!items) return values;
  for (const auto& item : *items) {
    auto text = scalar_text(item);
    const auto number = item.value<double>();
    if (!text || (item.is_floating_point() && !std::isfinite(*number)))
      wrong_type(item, key, "a string, a number, true or false");
    nlohmann::json value = *text;
    if (item.is_integer()) value = item.as_integer()->get();
    if (item.is_floating_point()) {
      value = *number;
      text = value.dump();  // 1.0 stays 1.0: a script may tell it from an integer
    }
    if (item.is_boolean()) value = item.as_boolean()->get();
    values.push_back({{*text, place(item)}, std::move(value)});
  }
  return values;
}

bool SuiteTable::is_text(const std::string& key) const {
  const auto* node = table_.get(key);
  return node != nullptr && node->is_string();
}

std::vector<std::string> SuiteTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, node] : table_) keys.emplace_back(key.str());
  return keys;
}

std::optional<SuiteTable> SuiteTable::table(const std::string& key) const {
  const auto* node = table_.get(key);
  if (!node) return std::nullopt;
  if (!node->is_table()) wrong_type(*node, key, "a table");
  return SuiteTable(*node->as_table(), file_);
}

std::map<std::string, Placed> SuiteTable::scalars() const {
  std::map<std::string, Placed> scalars;
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    const auto text = scalar_text(node);
    if (node.is_table()) {
      throw ConfigError(
          fmt::format("{}: {}: expected a value, got a table; put an id with a dot in quotes",
                      place(node), name));
    }
    if (!text) wrong_type(node, name, "a string, a number, true or false");
    scalars[name] = {*text, place(node)};
  }
  return scalars;
}

void SuiteTable::each_table(
    const std::string& key,
    const std::function<void(const std::string&, const SuiteTable&)>& visit) const {
  const auto tables = table(key);
  if (!tables) return;
  for (const auto& [name, child] : tables->table_) {
    if (!child.is_table()) wrong_type(child, std::string(name.str()), "a table of options");
    visit(std::string(name.str()), SuiteTable(*child.as_table(), file_));
  }
}

void SuiteTable::each_in_list(const std::string& key,
                              const std::function<void(const SuiteTable&)>& visit) const {
  const auto* items = list(key, "a list of tables");
  if (!items) return;
  for (const auto& item : *items) {
    if (!item.is_table()) wrong_type(item, key, "a table");
    visit(SuiteTable(*item.as_table(), file_));
  }
}

}  // namespace peakbench::planning
