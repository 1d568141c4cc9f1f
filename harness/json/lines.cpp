#include "json/lines.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

namespace peakbench {
namespace {

using nlohmann::json;

// Reads the text for the parser and counts its lines. The parser looks one character ahead after a
// number only, so what is asked at a key, a bracket or a text is the line it ends on.
struct Reader {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  std::size_t* line;

  const char& operator*() const { return *at; }
  Reader& operator++() {
    if (*at++ == '\n') ++*line;
    return *this;
  }
  Reader operator++(int) {
    const Reader before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Reader& other) const { return at == other.at; }
};

class LineCollector : public nlohmann::json_sax<json> {
 public:
  LineCollector(const std::size_t& line, std::map<std::string, std::size_t>& lines)
      : line_(line), lines_(lines) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool string(string_t&) override {
    keep();
    return value();
  }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    levels_.back().step = (json::json_pointer() / key).to_string();
    keep();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  struct Level {
    bool list;
    std::size_t place = 0;
    std::string step = "/0";
  };

  std::string pointer() const {
    std::string text;
    for (const auto& level : levels_) text += level.step;
    return text;
  }
  void keep() { lines_.emplace(pointer(), line_); }
  bool open(bool list) {
    keep();
    levels_.push_back({list});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return value();
  }
  bool value() {
    if (!levels_.empty() && levels_.back().list)
      levels_.back().step = "/" + std::to_string(++levels_.back().place);
    return true;
  }

  const std::size_t& line_;
  std::map<std::string, std::size_t>& lines_;
  std::vector<Level> levels_;
};

}  // namespace

JsonLines::JsonLines(std::string_view text) {
  std::size_t line = 1;
  LineCollector collector(line, lines_);
  json::sax_parse(Reader{text.data(), &line}, Reader{text.data() + text.size(), &line}, &collector);
}

std::size_t JsonLines::of(std::string pointer) const {
  while (true) {
    if (const auto found = lines_.find(pointer); found != lines_.end()) return found->second;
    if (pointer.empty()) return 1;
    pointer.erase(pointer.rfind('/'));
  }
}

}  // namespace peakbench
