#include "manifest/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "units/number.h"

namespace peakbench::manifest {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<OptionType, const char*>, 6> kTypes{{
    {OptionType::kInteger, "integer"},
    {OptionType::kNumber, "number"},
    {OptionType::kBoolean, "boolean"},
    {OptionType::kString, "string"},
    {OptionType::kChoice, "choice"},
    {OptionType::kPath, "path"},
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

std::optional<std::int64_t> integer_in(const std::string& text) {
  std::int64_t value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string to_string(OptionType type) {
  return std::ranges::find(kTypes, type, [](const auto& pair) { return pair.first; })->second;
}

std::optional<OptionType> option_type_from_string(const std::string& text) {
  for (const auto& [type, name] : kTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

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
      if (const auto number = integer_in(text)) value = *number;
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

}  // namespace peakbench::manifest
