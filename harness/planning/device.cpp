#include "planning/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "planning/selection.h"
#include "records/device.h"

namespace peakbench::planning {
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
  auto known = records::device_examples();
  known.emplace_back(kAuto);
  throw ConfigError(fmt::format("unknown device \"{}\"{}", id, suggestion(id, known)));
}

}  // namespace

bool is_device(const std::string& id) {
  return id == kAuto || id == kFirstCard ||
         records::recorded_device(id).kind != records::DeviceKind::kUnknown;
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
  return records::device_from(id).id;
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

namespace {

using Text = const std::string&;
using Value = std::optional<std::string>;  // in its one form; nullopt: refused

std::string trimmed(Text text) {
  const auto from = text.find_first_not_of(' ');
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

Value switch_from(Text text) {
  for (const char* on : {"True", "true", "1", "on"})
    if (text == on) return "True";
  for (const char* off : {"False", "false", "0", "off"})
    if (text == off) return "False";
  return std::nullopt;
}

Value megabytes_from(Text text) {
  constexpr std::int64_t kLeast = 3, kMost = 1 << 30;  // a segment of small blocks; a pebibyte
  const auto value = integer_from_text(text);
  if (!value || *value < kLeast || *value > kMost) return std::nullopt;
  return std::to_string(*value);
}

Value threshold_from(Text text) {
  const auto value = number_from_text(text);
  if (!value || *value <= 0 || *value >= 1) return std::nullopt;
  return fmt::format("{}", *value);
}

Value fraction_from(Text text) {
  const auto value = number_from_text(text);
  if (!value || *value <= 0 || *value > 1) return std::nullopt;
  return fmt::format("{}", *value);
}

Value power_of_two(Text text, std::int64_t least) {
  constexpr std::int64_t kMost = 1 << 20;
  const auto value = integer_from_text(text);
  if (!value || *value < least || *value > kMost) return std::nullopt;
  if (*value != 0 && !std::has_single_bit(static_cast<std::uint64_t>(*value))) return std::nullopt;
  return std::to_string(*value);
}

// What stands between `separator`s, but for those inside brackets.
std::vector<std::string> split(Text text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == separator && depth == 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  for (auto& piece : pieces) piece = trimmed(piece);
  return pieces;
}

// One number for all sizes, or [256:1,512:2,>:4]: up to so many MiB so many divisions; `>` is last.
Value divisions_from(Text text) {
  if (!text.starts_with('[')) return power_of_two(text, 1);
  if (!text.ends_with(']')) return std::nullopt;
  const auto steps = split(text.substr(1, text.size() - 2), ',');
  std::string list;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto pair = split(steps[i], ':');
    if (pair.size() != 2) return std::nullopt;
    const bool others = pair[0] == ">" && i > 0 && i + 1 == steps.size();
    const auto size = others ? Value(">") : power_of_two(pair[0], 1);
    const auto divisions = power_of_two(pair[1], 0);
    if (!size || !divisions) return std::nullopt;
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", *size, *divisions);
  }
  return "[" + list + "]";
}

Value backend_from(Text text) {
  if (text == "cudaMallocAsync")
    throw ConfigError(
        "allocator setting backend:cudaMallocAsync cannot be measured: Peakbench traces every "
        "allocation in PyTorch's native allocator, and this backend leaves them to the driver, "
        "which reports none. Leave `backend` out");
  return text == "native" ? Value(text) : std::nullopt;
}

// What PyTorch reads and what changes memory, with PyTorch's own ranges, in every release built
// with (c10/core/AllocatorConfig.h, c10/cuda/CUDAAllocatorConfig.h).
struct Key {
  const char* name;
  Value (*read)(Text);
  const char* expected;
  const char* otherwise = "";  // what is so anyway
};
constexpr std::array kKeys{
    Key{"backend", backend_from, "native", "native"},
    Key{"expandable_segments", switch_from, "True or False", "False"},
    Key{"garbage_collection_threshold", threshold_from, "a number between 0 and 1"},
    Key{"graph_capture_record_stream_reuse", switch_from, "True or False", "False"},
    Key{"large_segment_size_mb", megabytes_from, "an integer of 3 or more, in MiB", "20"},
    Key{"max_non_split_rounding_mb", megabytes_from, "an integer of 20 or more, in MiB"},
    Key{"max_split_size_mb", megabytes_from, "an integer of 20 or more, in MiB"},
    Key{"per_process_memory_fraction", fraction_from, "a number above 0, at most 1", "1"},
    Key{"roundup_power2_divisions", divisions_from,
        "a power of two, or a list of sizes in MiB with one each, like [256:1,512:2,>:4]"}};

// PyTorch knows them, some in later releases only, and no figure of ours would follow them.
constexpr std::array kLeftAlone{
    "expandable_segments_reserve",    "expandable_segments_reserve_by_class",
    "pinned_free_catch_all",          "pinned_max_cached_size_mb",
    "pinned_max_round_threshold_mb",  "pinned_num_register_threads",
    "pinned_reserve_segment_size_mb", "pinned_use_background_threads",
    "pinned_use_cuda_host_register",  "release_lock_on_cudamalloc"};

const Key* find_key(Text name) {
  const auto* key = std::ranges::find_if(kKeys, [&](const Key& one) { return name == one.name; });
  return key == kKeys.end() ? nullptr : key;
}

const Key& key_named(Text name) {
  if (const auto* key = find_key(name)) return *key;
  if (std::ranges::any_of(kLeftAlone, [&](const char* one) { return name == one; }))
    throw ConfigError(fmt::format(
        "allocator setting {} is about speed, addresses or pinned host memory and changes "
        "nothing that a card's allocator takes: leave it out",
        name));
  std::vector<std::string> names;
  for (const auto& one : kKeys) names.emplace_back(one.name);
  throw ConfigError(
      fmt::format("unknown allocator setting \"{}\"{}", name, suggestion(name, names)));
}

void add(Text setting, std::map<std::string, std::string>& settings) {
  const auto end = setting.find_first_of(":=");
  if (end == std::string::npos || end == 0)
    throw ConfigError(fmt::format(
        "allocator setting \"{}\": expected KEY:VALUE, like expandable_segments:True", setting));
  const auto name = trimmed(setting.substr(0, end)), typed = trimmed(setting.substr(end + 1));
  const auto& key = key_named(name);
  const auto value = key.read(typed);
  if (!value)
    throw ConfigError(
        fmt::format("allocator setting {}:{}: expected {}", name, typed, key.expected));
  if (!settings.emplace(name, *value).second)
    throw ConfigError(fmt::format("allocator setting {} is given twice", name));
}

// A segment of the size that blocks share is always split.
void check_splits(const std::map<std::string, std::string>& settings) {
  const auto segment = settings.find("large_segment_size_mb");
  const auto least = segment == settings.end() ? 20 : *integer_from_text(segment->second);
  for (const char* name : {"max_non_split_rounding_mb", "max_split_size_mb"})
    if (const auto found = settings.find(name);
        found != settings.end() && *integer_from_text(found->second) < least)
      throw ConfigError(fmt::format(
          "allocator setting {}:{}: expected an integer of {} or more, in MiB{}", name,
          found->second, least, segment == settings.end() ? "" : " (large_segment_size_mb)"));
}

}  // namespace

std::string normal_allocator(const std::string& text) {
  const auto typed = trimmed(text);
  if (typed.empty() || typed == "default") return "";
  std::map<std::string, std::string> settings;
  for (const auto& setting : split(typed, ',')) add(setting, settings);
  check_splits(settings);
  std::string all;
  for (const auto& [name, value] : settings)
    if (value != find_key(name)->otherwise)
      all += fmt::format("{}{}:{}", all.empty() ? "" : ",", name, value);
  return all;
}

bool is_allocator_key(const std::string& name) { return find_key(name) != nullptr; }

}  // namespace peakbench::planning
