#include "inventory/hook.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "host/card.h"
#include "inventory/found.h"
#include "launch/worker_torch.h"
#include "result/device.h"
#include "text/nearest.h"

namespace peakbench::inventory {
namespace {

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
void check_emulated(const result::Device& device, const manifest::Worker& worker) {
  emulator::parse_card(result::card_text(device), launch::installation_for(worker));
}

void check_libtorch(const result::Device& device, const manifest::Worker& worker) {
  if (const auto why = launch::why_not_with(worker, device); !why.empty())
    throw ConfigError(fmt::format("device \"{}\": {}", device.id, why));
}

// A name like one of a device is left to the plan, which names that.
void refuse_if_a_cards(const std::string& name) {
  if (plan::is_device(name) || nearest(name, result::device_examples())) return;
  if (const auto card = emulator::nearest_card(name, emulator::find_installation()); !card.empty())
    throw ConfigError(fmt::format("unknown device \"{}\"; did you mean the emulated card, \"{}\"?",
                                  name, result::emulated_device(card)));
}

// `real`: the cards of this machine, of any kind.
void check_card(const result::Device& device, const std::vector<std::string>& real) {
  if (std::ranges::find(real, device.id) != real.end()) return;
  const auto count = std::ranges::count_if(
      real, [&](const std::string& id) { return result::device_from(id).kind == device.kind; });
  const std::string here =
      count == 0   ? fmt::format("this machine has no {} that its driver shows", device.title)
      : count == 1 ? fmt::format("this machine has one {}, {}", device.title, device.example)
                   : fmt::format("this machine has {} {}s", count, device.title);
  throw ConfigError(fmt::format(
      "device \"{}\": {}. For memory without a card: --device {}. `peakbench list devices` shows "
      "what there is, `peakbench doctor` what is missing.",
      device.id, here, result::emulated_device(kDefaultCard)));
}

}  // namespace

plan::DeviceHook device_hook(const std::string& card, const manifest::Worker& worker) {
  return [card, worker](const std::string& asked) -> std::vector<std::string> {
    refuse_if_a_cards(asked);
    const auto real = cards_of_this_machine();
    std::vector<std::string> devices{asked};
    if (asked == "auto") devices = real.empty() ? without_a_card(card) : real;
    for (const auto& id : devices) {
      const auto device = result::device_from(id);
      check_libtorch(device, worker);
      if (device.kind == result::DeviceKind::kEmulated) check_emulated(device, worker);
      if (device.is_card) check_card(device, real);
    }
    return devices;
  };
}

plan::DeviceHook device_hook_for_others(const manifest::Worker& worker) {
  return [worker](const std::string& asked) -> std::vector<std::string> {
    if (asked == "auto")
      throw ConfigError(
          "device \"auto\": the cards of the machines that a scheduler gives are not known here. "
          "Name the device: --device cuda:0, cpu, or an emulated card.");
    refuse_if_a_cards(asked);
    const auto device = result::device_from(asked);
    check_libtorch(device, worker);
    if (device.kind == result::DeviceKind::kEmulated) check_emulated(device, worker);
    return {asked};
  };
}

}  // namespace peakbench::inventory
