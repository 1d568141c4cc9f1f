#include "emulator/host/card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/numbers.h"

namespace peakbench::emulator {
namespace {

struct Maker {
  const char* what;
  // How names begin; # is a digit. RX 5090 is nobody's, and probably meant as RTX 5090.
  std::vector<std::string_view> names;
};

const std::vector<Maker>& makers() {
  static const std::vector<Maker> kMakers{
      {"is one of AMD's, which run PyTorch's ROCm build",
       {"amd", "instinct", "radeon", "mi#", "rx5#00", "rx6#", "rx7#", "rx9#", "gfx#", "vega",
        "w6800", "w7#00"}},
      {"is one of Intel's, which run PyTorch's XPU build",
       {"intel", "arc", "max1###", "a310", "a380", "a580", "a750", "a770", "b50", "b60", "b570",
        "b580"}},
      {"is Intel's Gaudi, which runs PyTorch through Intel's own plugin", {"gaudi", "hpu"}},
      {"is one of Google's TPUs, which run PyTorch through XLA",
       {"tpu", "v5e", "v5p", "v6e", "trillium", "ironwood"}},
  };
  return kMakers;
}

bool begins_as(std::string_view name, std::string_view pattern) {
  if (name.size() < pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), name.begin(), [](char wanted, char is) {
    return wanted == '#' ? std::isdigit(static_cast<unsigned char>(is)) != 0 : wanted == is;
  });
}

}  // namespace

std::string other_maker(std::string_view name) {
  const std::string bare = bare_name(name);
  for (const auto& maker : makers())
    for (const auto& pattern : maker.names)
      if (begins_as(bare, pattern)) return maker.what;
  return "";
}

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMemory = 16ull << 40;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end; (end = text.find(at, start)) != std::string::npos; start = end + 1) {
    parts.push_back(text.substr(start, end - start));
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::vector<std::string> known_ids(const Installation& installation) {
  std::vector<std::string> ids;
  const auto folder = installation.folder / "cards";
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".json") ids.push_back(entry->path().stem());
  }
  if (error)
    throw ConfigError(fmt::format("no emulated cards: {}: {}; build the target peakbench_stand_ins",
                                  folder.string(), error.message()));
  std::ranges::sort(ids);
  return ids;
}

bool is_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

// "RTX 4090" and rtx4090 are near rtx-4090-24gb.
std::string nearest_of(const std::string& name, const std::vector<std::string>& ids) {
  std::vector<std::string> bare;
  for (const auto& id : ids) bare.push_back(bare_name(id));
  const auto near = nearest(bare_name(name), bare);
  return near ? ids[std::ranges::find(bare, *near) - bare.begin()] : "";
}

std::string card_suggestion(const std::string& name, const std::vector<std::string>& ids) {
  const auto near = nearest_of(name, ids);
  return near.empty() ? suggestion(name, ids) : fmt::format("; did you mean \"{}\"?", near);
}

[[noreturn]] void refuse_unknown(const std::string& name, const std::vector<std::string>& ids) {
  if (const auto maker = other_maker(name); !maker.empty()) {
    throw ConfigError(fmt::format(
        "the card \"{}\" {}; only NVIDIA's cards are emulated, as only they run its CUDA build "
        "(`peakbench list devices` shows them)",
        name, maker));
  }
  throw ConfigError(
      fmt::format("unknown card \"{}\" (a card of your own is a JSON file, given by its path){}",
                  name, card_suggestion(name, ids)));
}

Card find_card(const std::string& name, const Installation& installation) {
  if (is_file(name)) return read_card_file(name);
  const auto ids = known_ids(installation);
  if (std::ranges::count(ids, name) == 0) refuse_unknown(name, ids);
  return read_card_file(installation.folder / "cards" / (name + ".json"));
}

std::uint64_t bytes_option(const std::string& spec, const std::string& option,
                           const std::string& value) {
  if (const auto why = why_no_memory_size(value); !why.empty())
    throw ConfigError(fmt::format("{}: {}={}: {}", spec, option, value, why));
  return static_cast<std::uint64_t>(*bytes_from_text(value));
}

std::uint64_t memory_option(const std::string& spec, const std::string& value) {
  const auto bytes = bytes_option(spec, "memory", value);
  if (bytes > kMostMemory) {
    throw ConfigError(fmt::format(
        "{}: memory={}: no card has so much; the most that is emulated is 16TiB", spec, value));
  }
  return bytes;
}

int count_option(const std::string& spec, const std::string& value) {
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < 1 ||
      count > kMaxDevices) {
    throw ConfigError(fmt::format("{}: count={}: expected a number of devices from 1 to {}", spec,
                                  value, kMaxDevices));
  }
  return count;
}

int driver_option(const std::string& spec, const std::string& value) {
  int major = 0, minor = 0;
  char rest = 0;
  if (std::sscanf(value.c_str(), "%d.%d%c", &major, &minor, &rest) != 2 || major < 1 ||
      major > 99 || minor < 0 || minor > 9) {
    throw ConfigError(fmt::format(
        "{}: driver={}: expected the CUDA version that the driver is for, like 12.8", spec, value));
  }
  return 1000 * major + 10 * minor;
}

void streams_option(CardFacts& facts, const std::string& spec, const std::string& value) {
  if (value != "late" && value != "soon" && value != "at-once")
    throw ConfigError(fmt::format(
        "{}: streams={}: expected soon (work is done when it is asked for a second time), late "
        "(when the host waits for it) or at-once",
        spec, value));
  facts.late_streams = value == "late";
  facts.soon_streams = value == "soon";
}

void apply_option(Card& card, const std::string& option) {
  const auto equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  if (name == "memory") {
    card.facts.total_memory_bytes = memory_option(card.spec, value);
  } else if (name == "context") {
    card.context_is_asked = true;
    card.facts.context_bytes = value == "0" ? 0 : bytes_option(card.spec, name, value);
  } else if (name == "count") {
    card.facts.count = count_option(card.spec, value);
  } else if (name == "driver") {
    card.facts.driver_cuda_version = driver_option(card.spec, value);
  } else if (name == "streams") {
    streams_option(card.facts, card.spec, value);
  } else {
    throw ConfigError(
        fmt::format("{}: unknown option \"{}\"{}", card.spec, name,
                    suggestion(name, {"memory", "count", "context", "driver", "streams"})));
  }
}

// CUDA's rule: code for a capability runs on cards of the same major and an equal or higher minor
// one; the nearest is taken.
std::optional<int> architecture_for(const CardFacts& facts, const std::vector<int>& architectures) {
  std::optional<int> best;
  for (const int architecture : architectures) {
    const bool runs = architecture / 10 == facts.major && architecture % 10 <= facts.minor;
    if (runs && (!best || architecture > *best)) best = architecture;
  }
  return best;
}

std::string not_served(const Card& card, const Installation& installation) {
  return fmt::format(
      "{} has compute capability {}.{}; LibTorch {} has code for sm_{} alone, so it would not run "
      "on the real "
      "card either",
      card.facts.id, card.facts.major, card.facts.minor, installation.libtorch_version,
      fmt::join(installation.architectures, ", sm_"));
}

// Cards of the same compute capability run the same kernels.
std::vector<std::string> measured_on_others(const CardFacts& facts,
                                            const Installation& installation) {
  std::vector<std::string> files;
  for (const auto& id : known_ids(installation)) {
    const auto other = find_card(id, installation).facts;
    if (other.major == facts.major && other.minor == facts.minor && !other.measured_in.empty() &&
        other.measured_in != facts.measured_in)
      files.push_back(other.measured_in);
  }
  return files;
}

}  // namespace

Card parse_card(const std::string& spec, const Installation& installation) {
  const auto parts = split(spec, ',');
  if (parts[0].empty())
    throw ConfigError(
        "no card is named; expected something like h100-80gb or h100-80gb,memory=60GiB");
  Card card = find_card(parts[0], installation);
  card.spec = spec;
  for (std::size_t i = 1; i < parts.size(); ++i) apply_option(card, parts[i]);
  if (card.facts.total_memory_bytes == 0 || card.facts.total_memory_bytes > kMostMemory) {
    throw ConfigError(
        fmt::format("{}: total_memory_bytes: expected above 0 and at most 16 TiB", spec));
  }
  if (card.facts.context_bytes >= card.facts.total_memory_bytes) {
    throw ConfigError(fmt::format("{}: context: leaves nothing of the card's memory", spec));
  }
  const auto architecture = architecture_for(card.facts, installation.architectures);
  if (!architecture) throw ConfigError(not_served(card, installation));
  card.facts.binary_arch = *architecture;
  card.facts.measured_elsewhere = measured_on_others(card.facts, installation);
  card.facts.cuda_version = installation.cuda_version;
  card.facts.cudnn_version = installation.cudnn_version;
  card.facts.nccl_version = installation.nccl_version;
  return card;
}

std::string nearest_card(const std::string& name, const Installation& installation) {
  return nearest_of(name, known_ids(installation));
}

void take_limit_away(Card& card) {
  constexpr std::uint64_t kMoreThanAnyCard = 8ULL << 40;
  card.facts.total_memory_bytes = std::max(card.facts.total_memory_bytes, kMoreThanAnyCard);
}

ContextMemoryTaken context_taken(const Card& card) {
  if (card.context_is_asked || card.facts.context_bytes)
    return {card.facts.context_bytes, ContextSource::asked};
  return largest_of(card.context_memory);
}

std::vector<CardListing> list_cards(const Installation& installation) {
  std::vector<CardListing> listing;
  for (const std::string& id : known_ids(installation)) {
    const Card card = find_card(id, installation);
    const bool served = architecture_for(card.facts, installation.architectures).has_value();
    listing.push_back({id, card.title, card.facts.total_memory_bytes,
                       fmt::format("{}.{}", card.facts.major, card.facts.minor), served,
                       served ? "" : not_served(card, installation), card.context_memory});
  }
  return listing;
}

}  // namespace peakbench::emulator
