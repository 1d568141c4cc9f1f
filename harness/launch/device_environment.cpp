#include "launch/device_environment.h"

#include <algorithm>

#include "host/environment.h"

namespace peakbench::launch {

process::Environment environment_for(const result::Device& device) {
  if (device.kind != result::DeviceKind::kEmulated) return {};
  const auto installation = emulator::find_installation();
  const auto card = emulator::parse_card(result::card_text(device), installation);
  return emulator::emulation_environment(card, installation, "");
}

process::Environment unlimited_environment_for(const result::Device& device) {
  const auto installation = emulator::find_installation();
  auto card = emulator::parse_card(result::card_text(device), installation);
  constexpr std::uint64_t kMoreThanAnyCard = 8ULL << 40;
  card.facts.total_memory_bytes = std::max(card.facts.total_memory_bytes, kMoreThanAnyCard);
  return emulator::emulation_environment(card, installation, "");
}

}  // namespace peakbench::launch
