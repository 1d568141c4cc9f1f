#include "plan/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "plan/selection.h"
#include "text/nearest.h"
#include "units/bytes.h"
#include "units/number.h"

namespace peakbench::plan {
namespace {

constexpr const char* kEmulated = "emulated:";
const std::vector<std::string> kExamples{"cpu", "cuda:0", "emulated:h100-80gb", "auto"};

bool is_number(const std::string& text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

[[noreturn]] void refuse_value(const TypedSelection& device, const std::string& name,
                               const std::string& value, const char* expected) {
  throw ConfigError(fmt::format("{},{}={}: expected {}", device.id, name, value, expected));
}

std::string normal_emulated(const TypedSelection& device) {
  if (device.id == kEmulated) {
    throw ConfigError(
        "device \"emulated:\" names no card; expected emulated:CARD, like emulated:h100-80gb");
  }
  std::vector<std::string> options;
  for (const auto& [name, value] : device.options) {
    if (name == "memory" || name == "context") {
      if (!bytes_from_text(value)) refuse_value(device, name, value, kExpectedBytes);
    } else if (name == "count") {
      const bool fits = is_number(value, 2) && std::stoi(value) >= 1;
      if (!fits) refuse_value(device, name, value, "an integer from 1 to 99");
      if (std::stoi(value) == 1) continue;  // the default
    } else if (name != "driver") {          // the card itself says what a driver may be
      throw ConfigError(fmt::format("unknown option \"{}\" of device {}{}", name, device.id,
                                    suggestion(name, {"memory", "count", "context", "driver"})));
    }
    options.push_back(fmt::format(",{}={}", name, value));
  }
  std::ranges::sort(options);
  std::string text = device.id;
  for (const auto& option : options) text += option;
  return text;
}

}  // namespace

std::string normal_device(const std::string& text) {
  const TypedSelection device = parse_selection(text);
  if (device.id.starts_with(kEmulated)) return normal_emulated(device);
  const bool card = device.id.starts_with("cuda:") && is_number(device.id.substr(5), 3);
  if (device.id != "cpu" && device.id != "auto" && device.id != "cuda" && !card) {
    throw ConfigError(
        fmt::format("unknown device \"{}\"{}", device.id, suggestion(device.id, kExamples)));
  }
  if (!device.options.empty()) {
    throw ConfigError(
        fmt::format("device \"{}\" has no option \"{}\"", device.id, device.options[0].first));
  }
  if (device.id == "cuda") return "cuda:0";
  return card ? fmt::format("cuda:{}", std::stoi(device.id.substr(5))) : device.id;
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
