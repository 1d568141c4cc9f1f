#include "reports/render/expression.h"

#include <cctype>
#include <charconv>
#include <stdexcept>

namespace peakbench::reports {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  double whole() {
    const double value = sum();
    if (at_ != text_.size()) fail("an operator");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    constexpr std::size_t kShown = 100;
    const std::string shown = text_.size() > kShown ? text_.substr(0, kShown) + "..." : text_;
    throw std::invalid_argument("`" + shown + "`: expected " + expected + " at character " +
                                std::to_string(at_ + 1));
  }

  char next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  double sum() {
    double value = product();
    for (char c = next(); c == '+' || c == '-'; c = next()) {
      ++at_;
      const double right = product();
      value = c == '+' ? value + right : value - right;
    }
    return value;
  }

  double product() {
    double value = factor();
    for (char c = next(); c == '*' || c == '/'; c = next()) {
      ++at_;
      const double right = factor();
      if (c == '/' && right == 0) fail("no division by zero");
      value = c == '*' ? value * right : value / right;
    }
    return value;
  }

  double factor() {
    const char c = next();
    if (c == '-') {
      deeper();
      ++at_;
      const double value = -factor();
      --depth_;
      return value;
    }
    if (c == '(') return parenthesised();
    return number();
  }

  void deeper() {
    if (++depth_ > 50) fail("fewer parentheses and signs");
  }

  double parenthesised() {
    deeper();
    ++at_;
    const double value = sum();
    if (next() != ')') fail("`)`");
    ++at_;
    --depth_;
    return value;
  }

  double number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(),
                                              value, std::chars_format::fixed);
    if (error != std::errc{}) fail("a number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate(const std::string& expression) { return Parser(expression).whole(); }

}  // namespace peakbench::reports
