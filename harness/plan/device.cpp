#include "plan/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "plan/selection.h"
#include "result/device.h"
#include "text/nearest.h"

namespace peakbench::plan {
namespace {

// Typed, and in no case id: all cards of the machine, and its first one.
constexpr const char* kAuto = "auto";
constexpr const char* kFirstCard = "cuda";

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

bool is_device(const std::string& id) {
  return id == kAuto || id == kFirstCard ||
         result::recorded_device(id).kind != result::DeviceKind::kUnknown;
}

std::string normal_device(const std::string& text) {
  const TypedSelection typed = parse_selection(text);
  if (typed.id == kAuto || typed.id == kFirstCard) {
    refuse_options(typed);
    return typed.id == kAuto ? typed.id : "cuda:0";
  }
  if (!is_device(typed.id)) refuse_name(typed.id);
  std::string id = typed.id;  // without the quotes that may stand around values
  for (const auto& [name, value] : typed.options) id += fmt::format(",{}={}", name, value);
  return result::device_from(id).id;
}

nlohmann::json device_option_value(const std::string& name, const std::string& text) {
  static const std::vector<std::string> kSwitches{"cudnn", "tf32", "deterministic"};
  if (std::ranges::count(kSwitches, name) == 0)
    throw ConfigError(
        fmt::format("unknown device option \"{}\"{}", name, suggestion(name, kSwitches)));
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  throw ConfigError(fmt::format("device option {}={}: expected on or off", name, text));
}

}  // namespace peakbench::plan
