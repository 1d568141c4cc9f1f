#include "planning/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/fnv1a.h"
#include "records/axes.h"

namespace peakbench::planning {
namespace {

class Parser {
 public:
  Parser(const std::string& text, bool stacks) : text_(text), stacks_(stacks) {}

  std::vector<TypedSelection> parse() {
    std::vector<TypedSelection> stack{selection()};
    while (take('+')) stack.push_back(selection());
    return stack;
  }

 private:
  TypedSelection selection() {
    TypedSelection selection;
    const auto start = at_;
    selection.id = plain(",+=");
    if (selection.id.empty()) fail(start, "expected a name");
    if (peek() == '=') fail(start, "expected NAME,key=value; the name is missing");
    while (take(',')) option(selection);
    return selection;
  }

  void option(TypedSelection& selection) {
    const auto start = at_;
    const std::string key = plain(",+=");
    if (key.empty() || !take('=')) fail(start, "expected key=value");
    const auto same = [&](const auto& pair) { return pair.first == key; };
    if (std::ranges::any_of(selection.options, same)) {
      fail(start, fmt::format("option \"{}\" is given twice", key));
    }
    selection.options.emplace_back(key, value());
  }

  std::string value() {
    const auto start = at_;
    if (!take('"')) {
      auto text = plain(",+");
      if (text.empty()) fail(start, "expected a value after '='");
      if (text.find('"') != std::string::npos) fail(start, "a quote stands around a whole value");
      return text;
    }
    auto text = plain("\"");
    if (!take('"')) fail(start, "the quote is not closed");
    if (at_ < text_.size() && peek() != ',' && !(stacks_ && peek() == '+')) {
      fail(at_, "expected ',' after the closing quote");
    }
    return text;
  }

  // Up to one of `ends`; '+' joins only in stacks.
  std::string plain(std::string ends) {
    if (!stacks_) std::erase(ends, '+');
    const auto end = std::min(text_.find_first_of(ends, at_), text_.size());
    const auto start = std::exchange(at_, end);
    return text_.substr(start, end - start);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char wanted) {
    if (peek() != wanted || (wanted == '+' && !stacks_)) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void fail(std::size_t at, const std::string& problem) const {
    throw ConfigError(fmt::format("\"{}\", column {}: {}", text_, at + 1, problem));
  }

  const std::string& text_;
  bool stacks_;
  std::size_t at_ = 0;
};

}  // namespace

TypedSelection parse_selection(const std::string& text) { return Parser(text, false).parse()[0]; }

std::vector<TypedSelection> parse_stack(const std::string& text) {
  return Parser(text, true).parse();
}

namespace {

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '=' || c == '-';
}

}  // namespace

std::string case_id(const records::Setting& setting) {
  std::string id;
  for (const auto& row : records::axes())
    if (const auto part = records::in_id(row, setting); !part.empty())
      id += (id.empty() ? "" : "/") + part;
  return id;
}

std::string id_in_one_build(records::Setting setting) {
  setting.torch.clear();
  setting.build.clear();
  return case_id(setting);
}

std::string slug(const std::string& case_id) {
  constexpr std::size_t kLongest = 100, kHash = 9;
  std::string name;
  for (const char c : case_id.substr(0, kLongest - kHash)) name += is_safe(c) ? c : '-';
  return fmt::format("{}-{:08x}", name, fnv1a_32(case_id));
}

}  // namespace peakbench::planning
