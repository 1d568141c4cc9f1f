#include "reports/render/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <mustache.hpp>
#include <stdexcept>

#include "base/errors.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "reports/render/format.h"
#include "reports/render/template_check.h"
#include "reports/render/text.h"

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

namespace {

namespace mustache = kainjow::mustache;
using nlohmann::json;

// Mustache's own idea of false is `false` and the empty list; for templates an empty text is
// nothing, too.
mustache::data as_data(const json& value) {
  if (value.is_boolean()) return mustache::data(value.get<bool>());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.empty() ? mustache::data(false) : mustache::data(text);
  }
  // The library takes copies only, at every level all that is below it: so the empty place is
  // added, and then filled.
  if (value.is_array()) {
    mustache::data list{mustache::data::type::list};
    auto& items = const_cast<mustache::list&>(list.list_value());
    items.resize(value.size());
    std::ranges::transform(value, items.begin(), as_data);
    return list;
  }
  mustache::data object{mustache::data::type::object};
  for (const auto& [name, member] : value.items()) {
    object.set(name, mustache::data(false));
    const_cast<mustache::data&>(*object.get(name)) = as_data(member);
  }
  return object;
}

std::optional<TemplateFile> file_of(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_directory(status)) return {};
  return TemplateFile{path.string(),
                      files::read_regular_file(path.string(), files::kMostSmallText)};
}

// The engine drops lines by rules of its own; the checker has already taken out the lines of lone
// tags, as the specification says. So the engine sees one line: this character stands for each
// line's end. No field holds it (printable).
constexpr char kLineEnd = '\x1e';

std::string replaced(std::string text, char from, char to) {
  std::ranges::replace(text, from, to);
  return text;
}

mustache::lambda2 calculator() {
  return [](const std::string& text, const mustache::renderer& render) {
    return fraction(evaluate(replaced(render(text, false), kLineEnd, ' ')));
  };
}

}  // namespace

Templates::Templates(std::string user_directory, std::string builtin_directory)
    : user_(std::move(user_directory)), builtin_(std::move(builtin_directory)) {
  if (!user_.empty() && !files::is_folder(user_)) {
    throw ConfigError("Template folder " + user_ +
                      ": there is no such folder. It should hold html/ or markdown/ with the "
                      "templates that replace ours (docs/how-to/reports.md).");
  }
}

// Its own, or an item of another's.
struct Shown::Data {
  const mustache::data& value() const { return item == nullptr ? own : *item; }

  mustache::data own;
  const mustache::data* item = nullptr;
  std::shared_ptr<const Data> whole;
};

Shown::Shown(const json& data, const Field& scope)
    : data_(std::make_shared<Data>(Data{as_data(data), nullptr, nullptr})), scope_(&scope) {}

Shown::Shown(const Shown& whole, const std::string& list, std::size_t index, const Field& scope)
    : scope_(&scope) {
  const auto* items = whole.data_->value().get(list);
  data_ = std::make_shared<Data>(
      Data{mustache::data(false), &items->list_value().at(index), whole.data_});
}

struct Templates::Read {
  mustache::mustache engine;
};

Templates::~Templates() = default;

Templates::Read& Templates::read(const std::string& name, const Field& scope, Escape escape) const {
  auto& known = read_[{name, escape}];
  if (known) return *known;
  const LoadTemplate load = [this](const std::string& wanted) {
    std::optional<TemplateFile> file;
    if (!user_.empty()) file = file_of(std::filesystem::path(user_) / wanted);
    if (!file) file = file_of(std::filesystem::path(builtin_) / wanted);
    if (!file) throw std::out_of_range(wanted);
    return *file;
  };
  CheckedTemplate checked;
  try {
    checked = check_template(name, scope, load);
  } catch (const std::out_of_range&) {
    throw ConfigError("No template " + name + " in " + builtin_ +
                      ". Is the installation complete?");
  }
  if (!checked.errors.empty())
    throw ConfigError(fmt::format("{}", fmt::join(checked.errors, "\n")));
  known = std::make_unique<Read>(Read{mustache::mustache(replaced(checked.text, '\n', kLineEnd))});
  known->engine.set_custom_escape(escape == Escape::kHtml ? escape_html : escape_markdown);
  return *known;
}

std::string Templates::render(const std::string& name, const Shown& shown, Escape escape) const {
  auto& engine = read(name, *shown.scope_, escape).engine;
  mustache::data tools{mustache::data::type::object};
  tools.set("calc", mustache::data(calculator()));
  mustache::context<std::string> context(&tools);
  context.push(&shown.data_->value());
  try {
    std::string text = engine.render(context);
    if (!engine.is_valid()) throw ConfigError("Template " + name + ": " + engine.error_message());
    return replaced(std::move(text), kLineEnd, '\n');
  } catch (const std::invalid_argument& wrong) {
    throw ConfigError("Template " + name + ": {{#calc}}: " + wrong.what());
  }
}

}  // namespace peakbench::reports
