#include "plan/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/selection.h"
#include "result/bytes.h"
#include "result/errors.h"
#include "result/nearest.h"

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
    if (name == "memory") {
      if (!bytes_from_text(value)) refuse_value(device, name, value, kExpectedBytes);
    } else if (name == "count") {
      const bool fits = is_number(value, 2) && std::stoi(value) >= 1;
      if (!fits) refuse_value(device, name, value, "an integer from 1 to 99");
      if (std::stoi(value) == 1) continue;  // the default
    } else {
      throw ConfigError(fmt::format("unknown option \"{}\" of device {}{}", name, device.id,
                                    suggestion(name, {"memory", "count"})));
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

void check_device_option(const std::string& name) {
  static const std::vector<std::string> kKnown{"cudnn",
                                               "tf32",
                                               "deterministic",
                                               "expandable_segments",
                                               "max_split_size_mb",
                                               "garbage_collection_threshold",
                                               "roundup_power2_divisions"};
  if (std::ranges::count(kKnown, name) != 0) return;
  throw ConfigError(fmt::format("unknown device option \"{}\"{}", name, suggestion(name, kKnown)));
}

}  // namespace peakbench::plan
