#include "devices/hook.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/found.h"
#include "errors/errors.h"
#include "host/card.h"
#include "result/device.h"

namespace peakbench::devices {
namespace {

constexpr const char* kDefaultCard = "h100-80gb";

std::vector<std::string> cards_of_this_machine() {
  std::vector<std::string> ids;
  for (const auto& device : devices_of_this_machine())
    if (result::device_from(device.id).is_card) ids.push_back(device.id);
  return ids;
}

// Memory on an emulated card, times on the CPU.
std::vector<std::string> without_a_card(const std::string& card) {
  const auto emulated = result::emulated_device(card.empty() ? kDefaultCard : card);
  return {plan::normal_device(emulated), result::device_from("cpu").id};
}

// Throws ConfigError for an emulated card that is unknown (the nearest named), has no sensible
// memory, or that this LibTorch has no code for.
void check_emulated(const result::Device& device) {
  emulator::parse_card(result::card_text(device), emulator::find_installation());
}

[[noreturn]] void refuse_card(const std::string& device, std::size_t count) {
  const std::string here = count == 0   ? "this machine has no CUDA card that its driver shows"
                           : count == 1 ? "this machine has one CUDA card, cuda:0"
                                        : fmt::format("this machine has {} CUDA cards", count);
  throw ConfigError(fmt::format(
      "device \"{}\": {}. For memory without a card: --device emulated:h100-80gb. `peakbench "
      "list devices` shows what there is, `peakbench doctor` what is missing.",
      device, here));
}

}  // namespace

plan::DeviceHook device_hook(const std::string& card) {
  return [card](const std::string& asked) -> std::vector<std::string> {
    const auto real = cards_of_this_machine();
    std::vector<std::string> devices{asked};
    if (asked == "auto") devices = real.empty() ? without_a_card(card) : real;
    for (const auto& id : devices) {
      const auto device = result::device_from(id);
      if (device.kind == result::DeviceKind::kEmulated) check_emulated(device);
      if (device.is_card && std::ranges::find(real, id) == real.end()) refuse_card(id, real.size());
    }
    return devices;
  };
}

}  // namespace peakbench::devices
