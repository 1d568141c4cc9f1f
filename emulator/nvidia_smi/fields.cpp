#include "nvidia_smi/fields.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "core/idle_card.h"
#include "core/uuid.h"

namespace peakbench::emulator::smi {
namespace {

constexpr const char* kNone = "[N/A]";

struct Field {
  std::string_view name, other_name;
  const char* unit;
  std::string (*text)(const CardNow&);
};

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

std::string watts(unsigned milliwatts) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", milliwatts / 1000.0);
  return text;
}

std::string megahertz(int khz) { return std::to_string(khz / 1000); }

std::uint64_t free_bytes(const CardNow& card) {
  return card.facts->total_memory_bytes - std::min(card.facts->total_memory_bytes, card.used_bytes);
}

std::string bus_id(const CardNow& card) {
  char text[32];
  std::snprintf(text, sizeof text, "00000000:%02X:00.0", static_cast<unsigned>(card.index) + 1);
  return text;
}

std::string now(const CardNow&) {
  const std::time_t seconds = std::time(nullptr);
  char text[64];
  const auto length =
      std::strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S.000", std::localtime(&seconds));
  return {text, length};
}

constexpr auto none = [](const CardNow&) { return std::string(kNone); };
constexpr auto sm_clock = [](const CardNow& card) { return megahertz(card.facts->clock_khz); };
constexpr auto memory_clock = [](const CardNow& card) {
  return megahertz(card.facts->memory_clock_khz);
};
constexpr auto idle = [](const CardNow&) { return std::to_string(kIdlePercent); };
constexpr auto most_watts = [](const CardNow&) { return watts(kMostMilliwatts); };

const auto kFields = std::to_array<Field>({
    {"index", "", "", [](const CardNow& card) { return std::to_string(card.index); }},
    {"name", "gpu_name", "", [](const CardNow& card) { return card.facts->name; }},
    {"uuid", "gpu_uuid", "", [](const CardNow& card) { return uuid_text(card.index); }},
    {"count", "", "", [](const CardNow& card) { return std::to_string(card.facts->count); }},
    {"timestamp", "", "", now},
    {"driver_version", "", "", [](const CardNow&) { return std::string(kDriverVersion); }},
    {"compute_cap", "", "",
     [](const CardNow& card) {
       return std::to_string(card.facts->major) + "." + std::to_string(card.facts->minor);
     }},
    {"pci.bus_id", "gpu_bus_id", "", bus_id},
    {"memory.total", "", "MiB",
     [](const CardNow& card) { return mebibytes(card.facts->total_memory_bytes); }},
    {"memory.used", "", "MiB", [](const CardNow& card) { return mebibytes(card.used_bytes); }},
    {"memory.free", "", "MiB", [](const CardNow& card) { return mebibytes(free_bytes(card)); }},
    {"memory.reserved", "", "MiB", [](const CardNow&) { return std::string("0"); }},
    {"temperature.gpu", "", "", [](const CardNow&) { return std::to_string(kIdleCelsius); }},
    {"temperature.memory", "", "", none},
    {"utilization.gpu", "", "%", idle},
    {"utilization.memory", "", "%", idle},
    {"power.draw", "", "W", [](const CardNow&) { return watts(kIdleMilliwatts); }},
    {"power.limit", "", "W", most_watts},
    {"enforced.power.limit", "", "W", most_watts},
    {"power.default_limit", "", "W", most_watts},
    {"power.max_limit", "", "W", most_watts},
    {"clocks.sm", "clocks.current.sm", "MHz", sm_clock},
    {"clocks.gr", "clocks.current.graphics", "MHz", sm_clock},
    {"clocks.mem", "clocks.current.memory", "MHz", memory_clock},
    {"clocks.max.sm", "clocks.max.graphics", "MHz", sm_clock},
    {"clocks.max.mem", "clocks.max.memory", "MHz", memory_clock},
    {"pstate", "", "", [](const CardNow&) { return std::string("P0"); }},
    {"fan.speed", "", "", none},
    {"serial", "gpu_serial", "", none},
    {"mig.mode.current", "", "", none},
    {"compute_mode", "", "", [](const CardNow&) { return std::string("Default"); }},
    {"persistence_mode", "", "", [](const CardNow&) { return std::string("Enabled"); }},
    {"display_active", "", "", [](const CardNow&) { return std::string("Disabled"); }},
    {"display_mode", "", "", [](const CardNow&) { return std::string("Disabled"); }},
});

constexpr auto kProcessFields =
    std::to_array<std::string_view>({"pid", "process_name", "name", "used_memory",
                                     "used_gpu_memory", "gpu_uuid", "gpu_name", "gpu_bus_id"});

const Field* find_field(const std::string& name) {
  const auto found = std::ranges::find_if(kFields, [&](const Field& field) {
    return field.name == name || (!field.other_name.empty() && field.other_name == name);
  });
  return found == kFields.end() ? nullptr : &*found;
}

std::string name_of_process(std::int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name.empty() ? "[Not Found]" : name;
}

}  // namespace

void check_field(bool of_cards, const std::string& field) {
  const bool known = of_cards ? find_field(field) != nullptr
                              : std::ranges::find(kProcessFields, field) != kProcessFields.end();
  if (!known)
    throw std::invalid_argument("Field \"" + field +
                                "\" is not a valid field to query of a card that Peakbench "
                                "emulates.");
}

std::string unit_of(const std::string& field) {
  if (field == "used_memory" || field == "used_gpu_memory") return "MiB";
  const Field* found = find_field(field);
  return found ? found->unit : "";
}

std::string text_of(const CardNow& card, const std::string& field) {
  return find_field(field)->text(card);
}

std::string text_of_process(const CardNow& card, const CardUser& user, const std::string& field) {
  if (field == "pid") return std::to_string(user.pid);
  if (field == "process_name" || field == "name") return name_of_process(user.pid);
  if (field == "used_memory" || field == "used_gpu_memory") return mebibytes(user.used_bytes);
  return text_of(card, field);
}

void choose(const Arguments& asked, std::vector<CardNow>& cards) {
  if (asked.only.empty()) return;
  std::vector<CardNow> chosen;
  for (const std::string& name : asked.only) {
    const auto found = std::ranges::find_if(cards, [&](const CardNow& card) {
      return name == std::to_string(card.index) || name == uuid_text(card.index) ||
             name == bus_id(card);
    });
    if (found == cards.end()) throw std::invalid_argument("No devices were found: " + name);
    chosen.push_back(*found);
  }
  cards = std::move(chosen);
}

}  // namespace peakbench::emulator::smi
