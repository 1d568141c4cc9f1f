#include "manifest/read_option.h"

#include <fmt/format.h>

#include <cmath>

#include "manifest/option.h"
#include "manifest/read_value.h"
#include "manifest/vocabulary.h"

namespace peakbench::manifest {
namespace {

std::string read_name(const Fields& fields) {
  auto name = fields.get<std::string>("name");
  if (is_name(name, "_")) return name;
  throw FieldError(fields.pointer("name"),
                   "expected small letters, digits and _, got \"" + name + "\"");
}

std::optional<double> read_bound(const Fields& fields, const std::string& key, OptionType type) {
  if (!fields.find(key)) return std::nullopt;
  if (type != OptionType::kInteger && type != OptionType::kNumber && type != OptionType::kParts) {
    throw FieldError(fields.pointer(key), "only an integer or a number has one");
  }
  const double bound = fields.get<double>(key);
  if (type != OptionType::kNumber && bound != std::floor(bound)) {
    throw FieldError(fields.pointer(key), fmt::format("expected an integer, got {}", bound));
  }
  return bound;
}

void read_range(const Fields& fields, Option& option) {
  option.minimum = read_bound(fields, "minimum", option.type);
  option.maximum = read_bound(fields, "maximum", option.type);
  if (option.minimum && option.maximum && *option.minimum > *option.maximum) {
    throw FieldError(fields.pointer("minimum"),
                     fmt::format("{} is above the maximum, {}", *option.minimum, *option.maximum));
  }
}

std::vector<std::string> read_choices(const Fields& fields, OptionType type) {
  if (type != OptionType::kChoice) {
    if (fields.find("choices"))
      throw FieldError(fields.pointer("choices"), "only a choice has them");
    return {};
  }
  fields.require("choices");
  auto choices = read_names(fields, "choices", [](const auto& choice, const auto& pointer) {
    if (choice.empty()) throw FieldError(pointer, "is empty");
  });
  if (choices.empty()) throw FieldError(fields.pointer("choices"), "is empty");
  return choices;
}

// {"attention": ["attention_part"]}: by choice, the facts that it needs.
std::map<std::string, std::vector<std::string>> read_needs(const Fields& fields,
                                                           const Option& option) {
  if (fields.find("needs") == nullptr) return {};
  if (option.type != OptionType::kChoice)
    throw FieldError(fields.pointer("needs"), "only a choice has them");
  const Fields by_choice = fields.child("needs");
  by_choice.only(option.choices);
  std::map<std::string, std::vector<std::string>> needs;
  for (const auto& choice : option.choices)
    if (by_choice.find(choice) != nullptr) needs[choice] = read_facts(by_choice, choice);
  return needs;
}

nlohmann::json read_default(const Fields& fields, const Option& option) {
  const auto& value = fields.require("default");
  if (const auto accepted = accept(option, value)) return *accepted;
  throw FieldError(fields.pointer("default"),
                   "expected " + expected(option) + ", got " + describe(value));
}

}  // namespace

Option read_option(const Fields& fields, Problems& problems) {
  problems.check_keys(fields, {"name", "type", "default", "minimum", "maximum", "choices", "needs",
                               "unit", "summary"});
  Option option;
  problems.check([&] { option.name = read_name(fields); });
  problems.check([&] { option.summary = read_text(fields, "summary"); });
  problems.check([&] { option.unit = fields.get_or<std::string>("unit", ""); });
  // What a value may be follows from the type, and a default is judged by both.
  const bool typed = problems.check([&] {
    option.type = *option_type_from_string(read_one_of(
        fields, "type", {"integer", "number", "boolean", "string", "choice", "path", "parts"}));
  });
  if (!typed) return option;
  const bool ranged = problems.check([&] { read_range(fields, option); });
  const bool chosen = problems.check([&] { option.choices = read_choices(fields, option.type); });
  if (chosen) problems.check([&] { option.needs = read_needs(fields, option); });
  if (ranged && chosen) {
    problems.check([&] { option.default_value = read_default(fields, option); });
  }
  return option;
}

}  // namespace peakbench::manifest
