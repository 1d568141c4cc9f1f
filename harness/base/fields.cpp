#include "base/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/nearest.h"

namespace peakbench {
namespace {

using nlohmann::json;

[[noreturn]] void wrong_type(const json& value, const std::string& pointer, const char* expected) {
  throw FieldError(pointer, fmt::format("expected {}, got {}", expected, describe(value)));
}

template <class T>
std::vector<T> read_list(const json& value, const std::string& pointer) {
  if (!value.is_array()) wrong_type(value, pointer, "a list");
  std::vector<T> list;
  list.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    list.push_back(read_value<T>(value[i], fmt::format("{}/{}", pointer, i)));
  }
  return list;
}

template <class T>
std::map<std::string, T> read_map(const json& value, const std::string& pointer) {
  const Fields fields(value, pointer);
  std::map<std::string, T> map;
  for (const auto& [key, item] : value.items()) {
    map.emplace(key, read_value<T>(item, fields.pointer(key)));
  }
  return map;
}

}  // namespace

FieldError::FieldError(const std::string& pointer, const std::string& problem)
    : RunFileError(fmt::format("{}: {}", pointer.empty() ? "top level" : pointer, problem)),
      pointer(pointer) {}

std::string describe(const json& value) {
  constexpr std::size_t kShown = 60;
  if (value.is_null()) return "null";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = json_line(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return value.is_string() ? "the string " + text : text;
}

template <>
std::string read_value<std::string>(const json& value, const std::string& pointer) {
  if (!value.is_string()) wrong_type(value, pointer, "a string");
  return value.get<std::string>();
}

template <>
bool read_value<bool>(const json& value, const std::string& pointer) {
  if (!value.is_boolean()) wrong_type(value, pointer, "true or false");
  return value.get<bool>();
}

template <>
std::uint64_t read_value<std::uint64_t>(const json& value, const std::string& pointer) {
  if (!value.is_number_unsigned() &&
      !(value.is_number_integer() && value.get<std::int64_t>() >= 0)) {
    wrong_type(value, pointer, "an integer of 0 or more");
  }
  return value.get<std::uint64_t>();
}

template <>
std::int64_t read_value<std::int64_t>(const json& value, const std::string& pointer) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest;
  if (!value.is_number_integer() || too_large) wrong_type(value, pointer, "an integer of 64 bits");
  return value.get<std::int64_t>();
}

template <>
double read_value<double>(const json& value, const std::string& pointer) {
  // The parser refuses numbers that no double holds.
  if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
  wrong_type(value, pointer, words_of(Range<double>{}).c_str());
}

double read_measured(const json& value, const std::string& pointer) {
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (!value.is_number()) wrong_type(value, pointer, R"(a number, "nan", "inf" or "-inf")");
  return value.get<double>();
}

template <>
json read_value<json>(const json& value, const std::string& pointer) {
  if (!value.is_object()) wrong_type(value, pointer, "an object");
  return value;
}

template <>
std::vector<std::string> read_value(const json& value, const std::string& pointer) {
  return read_list<std::string>(value, pointer);
}

template <>
std::vector<std::int64_t> read_value(const json& value, const std::string& pointer) {
  return read_list<std::int64_t>(value, pointer);
}

template <>
std::map<std::string, std::int64_t> read_value(const json& value, const std::string& pointer) {
  return read_map<std::int64_t>(value, pointer);
}
template <>
std::map<std::string, std::string> read_value(const json& value, const std::string& pointer) {
  return read_map<std::string>(value, pointer);
}

Fields::Fields(const json& object, std::string pointer)
    : object_(object), pointer_(std::move(pointer)) {
  if (!object_.is_object()) wrong_type(object_, pointer_, "an object");
}

std::string Fields::pointer(const std::string& key) const {
  return pointer_ + (json::json_pointer() / key).to_string();
}

const json* Fields::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& Fields::require(const std::string& key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) throw FieldError(pointer(key), "missing");
  return *found;
}

std::optional<Fields> Fields::maybe_child(const std::string& key) const {
  const auto* value = find(key);
  return value ? std::optional<Fields>(std::in_place, *value, pointer(key)) : std::nullopt;
}

void Fields::each(const std::string& key, const std::function<void(const Fields&)>& visit) const {
  const auto* list = find(key);
  if (!list) return;
  if (!list->is_array()) wrong_type(*list, pointer(key), "a list");
  for (std::size_t i = 0; i < list->size(); ++i) {
    visit(Fields((*list)[i], fmt::format("{}/{}", pointer(key), i)));
  }
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) keys.push_back(key);
  return keys;
}

void Fields::only(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw FieldError(pointer(key), "unknown key" + suggestion(key, known));
  }
}

void Fields::refuse(const std::string& key, const std::string& expected) const {
  wrong_type(require(key), pointer(key), expected.c_str());
}

json finite_or_name(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

}  // namespace peakbench
