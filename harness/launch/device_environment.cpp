#include "launch/device_environment.h"

#include <algorithm>

#include "host/environment.h"

namespace peakbench::launch {
namespace {

constexpr std::string_view kEmulated = "emulated:";

}  // namespace

bool is_emulated(const std::string& device) { return device.rfind(kEmulated, 0) == 0; }

void check_emulated(const std::string& device) {
  emulator::parse_card(device.substr(kEmulated.size()), emulator::find_installation());
}

process::Environment environment_for(const std::string& device) {
  if (!is_emulated(device)) return {};
  const auto installation = emulator::find_installation();
  const auto card = emulator::parse_card(device.substr(kEmulated.size()), installation);
  return emulator::emulation_environment(card, installation, "");
}

process::Environment unlimited_environment_for(const std::string& device) {
  auto installation = emulator::find_installation();
  auto card = emulator::parse_card(device.substr(kEmulated.size()), installation);
  constexpr std::uint64_t kMoreThanAnyCard = 8ULL << 40;
  card.facts.total_memory_bytes = std::max(card.facts.total_memory_bytes, kMoreThanAnyCard);
  return emulator::emulation_environment(card, installation, "");
}

}  // namespace peakbench::launch
