#include "nvidia_smi/query.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "core/card.h"
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

void check_field(bool of_cards, const std::string& field) {
  const bool known = of_cards ? find_field(field) != nullptr
                              : std::ranges::find(kProcessFields, field) != kProcessFields.end();
  if (!known)
    throw std::invalid_argument("Field \"" + field +
                                "\" is not a valid field to query of a card that Peakbench "
                                "emulates.");
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const auto comma = std::min(list.find(',', at), list.size());
    const auto first = list.find_first_not_of(' ', at);
    if (first < comma) {
      const auto last = list.find_last_not_of(' ', comma - 1);
      parts.push_back(list.substr(first, last - first + 1));
    }
    at = comma + 1;
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& word) {
  throw std::invalid_argument(
      "nvidia-smi as emulated by Peakbench has no " + word +
      "; it has -L, --query-gpu=..., --query-compute-apps=... and -i, with --format=csv");
}

// "--format=csv" has the value beside the name, "-i 0" behind it.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {}

  bool next() {
    if (at_ == words_.size()) return false;
    const std::string& word = words_[at_++];
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    name = word.substr(0, equals);
    beside_ = equals == std::string::npos ? "" : word.substr(equals + 1);
    return true;
  }
  std::string value() {
    if (!beside_.empty()) return beside_;
    if (at_ == words_.size()) throw std::invalid_argument("Option " + name + " needs a value.");
    return words_[at_++];
  }

  std::string name;

 private:
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::string beside_;
};

void read_format(Arguments& asked, const std::string& format) {
  const auto parts = split(format);
  if (std::ranges::find(parts, "csv") == parts.end()) refuse("--format=" + format);
  for (const std::string& part : parts) {
    if (part == "noheader") {
      asked.heading = false;
    } else if (part == "nounits") {
      asked.units = false;
    } else if (part != "csv") {
      refuse("--format=" + part);
    }
  }
}

void query(Arguments& asked, What what, const std::string& fields) {
  asked.what = what;
  asked.fields = split(fields);
  for (const std::string& field : asked.fields) check_field(what == What::cards, field);
}

}  // namespace

Arguments parse(const std::vector<std::string>& given) {
  Arguments asked;
  bool format = false;
  for (Words words(given); words.next();) {
    const std::string& name = words.name;
    if (name == "-L" || name == "--list-gpus") {
      asked.what = What::list;
    } else if (name == "-i" || name == "--id") {
      asked.only = split(words.value());
    } else if (name == "--query-gpu") {
      query(asked, What::cards, words.value());
    } else if (name == "--query-compute-apps") {
      query(asked, What::processes, words.value());
    } else if (name == "--format") {
      read_format(asked, words.value());
      format = true;
    } else {
      refuse(name);
    }
  }
  if (!asked.fields.empty() && !format)
    throw std::invalid_argument("\"--format=\" switch is missing. Option \"--query-*\" needs it.");
  return asked;
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
