#include "plan/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "plan/selection.h"
#include "result/device.h"
#include "text/nearest.h"
#include "units/number.h"

namespace peakbench::plan {
namespace {

// Typed, and in no case id: all cards of the machine, and its first one.
constexpr const char* kAuto = "auto";
constexpr const char* kFirstCard = "cuda";

bool is_number(const std::string& text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

void refuse_options(const TypedSelection& device) {
  if (device.options.empty()) return;
  throw ConfigError(
      fmt::format("device \"{}\" has no option \"{}\"", device.id, device.options[0].first));
}

[[noreturn]] void refuse_name(const std::string& id) {
  auto known = result::device_examples();
  known.emplace_back(kAuto);
  throw ConfigError(fmt::format("unknown device \"{}\"{}", id, suggestion(id, known)));
}

}  // namespace

std::string normal_device(const std::string& text) {
  const TypedSelection typed = parse_selection(text);
  if (typed.id == kAuto || typed.id == kFirstCard) {
    refuse_options(typed);
    return typed.id == kAuto ? typed.id : "cuda:0";
  }
  if (result::recorded_device(typed.id).kind == result::DeviceKind::kUnknown) refuse_name(typed.id);
  std::string id = typed.id;  // without the quotes that may stand around values
  for (const auto& [name, value] : typed.options) id += fmt::format(",{}={}", name, value);
  return result::device_from(id).id;
}

namespace {

// What each setting takes; every one is recorded in the result as it is in force.
struct DeviceOption {
  const char* name;
  enum { kSwitch, kPositive, kFraction } type;
};
constexpr DeviceOption kDeviceOptions[] = {
    {"cudnn", DeviceOption::kSwitch},
    {"tf32", DeviceOption::kSwitch},
    {"deterministic", DeviceOption::kSwitch},
    {"expandable_segments", DeviceOption::kSwitch},
    {"max_split_size_mb", DeviceOption::kPositive},
    {"garbage_collection_threshold", DeviceOption::kFraction},
    {"roundup_power2_divisions", DeviceOption::kPositive}};

[[noreturn]] void refuse_setting(const std::string& name, const std::string& text,
                                 const char* expected) {
  throw ConfigError(fmt::format("device option {}={}: expected {}", name, text, expected));
}

nlohmann::json switch_from(const std::string& name, const std::string& text) {
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  refuse_setting(name, text, "on or off");
}

nlohmann::json fraction_from(const std::string& name, const std::string& text) {
  const auto value = number_from_text(text);
  if (!value || *value <= 0 || *value >= 1) refuse_setting(name, text, "a number between 0 and 1");
  return *value;
}

}  // namespace

nlohmann::json device_option_value(const std::string& name, const std::string& text) {
  const auto* option = std::ranges::find_if(
      kDeviceOptions, [&](const DeviceOption& known) { return name == known.name; });
  if (option == std::end(kDeviceOptions)) {
    std::vector<std::string> known;
    for (const auto& one : kDeviceOptions) known.emplace_back(one.name);
    throw ConfigError(fmt::format("unknown device option \"{}\"{}", name, suggestion(name, known)));
  }
  switch (option->type) {
    case DeviceOption::kSwitch:
      return switch_from(name, text);
    case DeviceOption::kFraction:
      return fraction_from(name, text);
    case DeviceOption::kPositive:
      break;
  }
  if (!is_number(text, 9) || std::stoi(text) < 1)
    refuse_setting(name, text, "an integer of 1 or more");
  return std::stoi(text);
}

}  // namespace peakbench::plan
