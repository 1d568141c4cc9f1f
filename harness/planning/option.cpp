#include "planning/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers.h"
#include "planning/vocabulary.h"

namespace peakbench::planning {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<OptionType, const char*>, 7> kTypes{{
    {OptionType::kInteger, "integer"},
    {OptionType::kNumber, "number"},
    {OptionType::kBoolean, "boolean"},
    {OptionType::kString, "string"},
    {OptionType::kChoice, "choice"},
    {OptionType::kPath, "path"},
    {OptionType::kParts, "parts"},
}};

Range<double> range_in(const Option& option) {
  Range<double> range;
  if (option.minimum) range.least = *option.minimum;
  if (option.maximum) range.most = *option.maximum;
  return range;
}

std::string range_of(const Option& option) {
  const std::string unit = option.unit.empty() ? "" : " (" + option.unit + ")";
  if (option.minimum && option.maximum) {
    return fmt::format(" from {} to {}{}", *option.minimum, *option.maximum, unit);
  }
  if (option.minimum) return fmt::format(" of {} or more{}", *option.minimum, unit);
  if (option.maximum) return fmt::format(" of {} or less{}", *option.maximum, unit);
  return unit;
}

// "mlp" or, where the option has a range, "mlp=16".
std::optional<ChosenPart> chosen_part(const Option& option, const std::string& text) {
  const auto equals = text.find('=');
  ChosenPart part{text.substr(0, equals), std::nullopt};
  if (!is_part(part.name)) return std::nullopt;
  if (equals == std::string::npos) return part;
  part.number = integer_from_text(text.substr(equals + 1));
  const bool fits = part.number && (option.minimum || option.maximum) &&
                    range_in(option).holds(static_cast<double>(*part.number));
  return fits ? std::optional(part) : std::nullopt;
}

std::string expected_parts(const Option& option) {
  const auto names = fmt::format("auto, or some of {}, joined by ':'", fmt::join(parts(), ", "));
  if (!option.minimum && !option.maximum) return names;
  return fmt::format("{}, each as it is or with =N, an integer{}", names, range_of(option));
}

}  // namespace

std::optional<std::vector<ChosenPart>> chosen_parts(const Option& option, const std::string& text) {
  std::vector<ChosenPart> found;
  if (text == "auto") return found;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(':', begin), text.size());
    const auto part = chosen_part(option, text.substr(begin, end - begin));
    const auto same = [&](const ChosenPart& other) { return other.name == part->name; };
    if (!part || std::ranges::any_of(found, same)) return std::nullopt;
    found.push_back(*part);
    begin = end + 1;
  }
  return found;
}

std::string to_string(OptionType type) {
  return std::ranges::find(kTypes, type, [](const auto& pair) { return pair.first; })->second;
}

namespace {

std::optional<OptionType> option_type_from_string(const std::string& text) {
  for (const auto& [type, name] : kTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

}  // namespace

std::string expected(const Option& option) {
  switch (option.type) {
    case OptionType::kInteger:
      return "an integer" + range_of(option);
    case OptionType::kNumber:
      return "a number" + range_of(option);
    case OptionType::kBoolean:
      return "true or false";
    case OptionType::kChoice:
      return fmt::format("one of {}", fmt::join(option.choices, ", "));
    case OptionType::kPath:
      return "a path";
    case OptionType::kParts:
      return expected_parts(option);
    case OptionType::kString:
      break;
  }
  return "a string";
}

std::optional<json> accept(const Option& option, const json& value) {
  switch (option.type) {
    case OptionType::kInteger: {
      const bool fits = value.is_number_integer() &&
                        !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
      if (!fits || !range_in(option).holds(value.get<double>())) return std::nullopt;
      return json(value.get<std::int64_t>());
    }
    case OptionType::kNumber:
      if (!value.is_number() || !range_in(option).holds(value.get<double>())) return std::nullopt;
      return json(value.get<double>());
    case OptionType::kBoolean:
      return value.is_boolean() ? std::optional<json>(value) : std::nullopt;
    case OptionType::kChoice:
      if (!value.is_string() || std::ranges::count(option.choices, value.get<std::string>()) == 0) {
        return std::nullopt;
      }
      return value;
    case OptionType::kParts:
      if (!value.is_string() || !chosen_parts(option, value.get<std::string>()))
        return std::nullopt;
      return value;
    case OptionType::kString:
    case OptionType::kPath:
      break;
  }
  return value.is_string() ? std::optional<json>(value) : std::nullopt;
}

std::optional<json> accept_text(const Option& option, const std::string& text) {
  std::optional<json> value;
  switch (option.type) {
    case OptionType::kInteger:
      if (const auto number = integer_from_text(text)) value = *number;
      break;
    case OptionType::kNumber:
      if (const auto number = number_from_text(text)) value = *number;
      break;
    case OptionType::kBoolean:
      if (text == "true" || text == "on") value = true;
      if (text == "false" || text == "off") value = false;
      break;
    default:
      value = text;
  }
  return value ? accept(option, *value) : std::nullopt;
}

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

}  // namespace peakbench::planning
