#include "launch/device_environment.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "host/environment.h"
#include "host/values_environment.h"

namespace peakbench::launch {

process::Environment environment_for(const result::Device& device, const Emulated& how) {
  if (device.kind != result::DeviceKind::kEmulated) return {};
  const auto installation = emulator::find_installation();
  auto card = emulator::parse_card(result::card_text(device), installation);
  constexpr std::uint64_t kMoreThanAnyCard = 8ULL << 40;
  if (!how.limited)
    card.facts.total_memory_bytes = std::max(card.facts.total_memory_bytes, kMoreThanAnyCard);
  auto environment = emulator::emulation_environment(card, installation, "");
  if (!how.values) return environment;
  // The worker's PyTorch is this build's.
  auto values = emulator::values_environment({.compute = true, .assume = how.assume}, installation,
                                             std::nullopt, [] { return false; });
  std::ranges::move(values, std::back_inserter(environment));
  return environment;
}

}  // namespace peakbench::launch
