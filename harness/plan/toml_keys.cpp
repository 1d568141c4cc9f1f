#include "plan/toml_keys.h"

#include <algorithm>
#include <string>

namespace peakbench::plan {
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

}  // namespace peakbench::plan
