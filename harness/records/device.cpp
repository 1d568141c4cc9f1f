#include "records/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "records/case.h"

namespace peakbench::records {
namespace {

// A new kind is one row.
constexpr std::array<DeviceFacts, 3> kKinds{
    {{.kind = DeviceKind::kCpu,
      .word = "cpu",
      .form = DeviceForm::kWord,
      .title = "CPU",
      .example = "cpu",
      .module = "cpu",
      .model_fact = "cpu",
      .results_repeat = true,
      .is_host_memory = true},
     {.kind = DeviceKind::kCuda,
      .word = "cuda",
      .form = DeviceForm::kNumbered,
      .title = "CUDA card",
      .example = "cuda:0",
      .module = "cuda",
      .needs = "A real card needs a driver and a torch installed with its vendor libraries (set "
               "PEAKBENCH_TORCH_DIR)",
      .is_card = true,
      .caching_allocator = true},
     {.kind = DeviceKind::kEmulated,
      .word = "emulated",
      .form = DeviceForm::kNamed,
      .title = "emulated card",
      .example = "emulated:h100-80gb",
      .fixed_space = "cuda:0",
      .module = "cuda",
      .needs = "An emulated card needs a complete installation of Peakbench",
      .has_times = false,
      .computes_values = false,
      .no_times = "an emulated card computes nothing: it has no times",
      .no_values = "an emulated card computes no values",
      .caching_allocator = true}}};

constexpr bool says_why_not(const DeviceFacts& kind) {
  return kind.has_times == std::string_view(kind.no_times).empty() &&
         kind.computes_values == std::string_view(kind.no_values).empty();
}
static_assert(std::ranges::all_of(kKinds, says_why_not), "what a kind cannot do has its reason");

constexpr const char* kExpectedCount = "expected an integer from 1 to 99";

// `word`, `word:` and what follows, or `word,options`.
std::string_view word_of(std::string_view id) { return id.substr(0, id.find_first_of(":,")); }

const DeviceFacts* kind_of(const std::string& id) {
  const auto word = word_of(id);
  const auto* row =
      std::ranges::find_if(kKinds, [&](const DeviceFacts& kind) { return word == kind.word; });
  return row == kKinds.end() ? nullptr : row;
}

std::optional<int> number_from(std::string_view text, std::size_t longest) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || text.size() > longest || !digits) return std::nullopt;
  std::from_chars(text.data(), end, number);
  return number;
}

[[noreturn]] void refuse_name(const std::string& id) {
  throw ConfigError(fmt::format("unknown device \"{}\"{}", id, suggestion(id, device_examples())));
}

[[noreturn]] void refuse_value(const Device& device, const std::string& name,
                               const std::string& value, const std::string& why) {
  throw ConfigError(fmt::format("{},{}={}: {}", emulated_device(device.card), name, value, why));
}

void add_option(Device& device, const std::string& name, const std::string& value) {
  if (name == "memory" || name == "context") {
    const bool sets_none_aside = name == "context" && value == "0";
    if (const auto why = why_no_memory_size(value); !why.empty() && !sets_none_aside)
      refuse_value(device, name, value, why);
  } else if (name == "count") {
    const auto count = number_from(value, 2);
    if (count.value_or(0) < 1) refuse_value(device, name, value, kExpectedCount);
    if (*count == 1) return;      // the default
  } else if (name != "driver") {  // the card itself says what a driver may be
    throw ConfigError(fmt::format("unknown option \"{}\" of device {}{}", name,
                                  emulated_device(device.card),
                                  suggestion(name, {"memory", "count", "context", "driver"})));
  }
  if (!device.options.emplace(name, value).second)
    throw ConfigError(
        fmt::format("{}: option \"{}\" is given twice", emulated_device(device.card), name));
}

// `text`: what follows the word and its colon.
void read_card(Device& device, const std::string& text) {
  device.card = text.substr(0, text.find(','));
  if (device.card.empty())
    throw ConfigError(fmt::format("device \"{0}:\" names no card; expected {0}:CARD, like {1}",
                                  device.word, device.example));
  for (auto at = device.card.size(); at < text.size();) {
    const auto start = at + 1, end = std::min(text.find(',', start), text.size());
    const auto option = text.substr(start, end - start);
    const auto equals = option.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw ConfigError(
          fmt::format("{}:{}: expected name=value, got \"{}\"", device.word, text, option));
    add_option(device, option.substr(0, equals), option.substr(equals + 1));
    at = end;
  }
  device.id = fmt::format("{}:{}", device.word, card_text(device));
}

void read_index(Device& device, const std::string& text) {
  const auto index = number_from(text, 3);
  if (!index) refuse_name(device.id);
  device.index = *index;
  device.id = fmt::format("{}:{}", device.word, *index);
}

void read_rest(Device& device) {
  const std::string word = device.word, id = device.id;
  const auto rest = id.substr(word.size());
  if (device.form != DeviceForm::kNamed)
    if (const auto comma = rest.find(','); comma != std::string::npos) {
      const auto option = rest.substr(comma + 1);
      throw ConfigError(fmt::format("device \"{}\" has no option \"{}\"",
                                    id.substr(0, word.size() + comma),
                                    option.substr(0, option.find('='))));
    }
  const bool colon = rest.starts_with(':');
  if (colon == (device.form == DeviceForm::kWord)) refuse_name(id);
  if (device.form == DeviceForm::kNumbered) read_index(device, rest.substr(1));
  if (device.form == DeviceForm::kNamed) read_card(device, rest.substr(1));
}

// With the facts of its kind and nothing else.
Device bare_device(const std::string& id) {
  Device device;
  if (const auto* kind = kind_of(id)) static_cast<DeviceFacts&>(device) = *kind;
  device.id = id;
  return device;
}

Device with_space(Device device) {
  device.space = *device.fixed_space == '\0' ? device.id : device.fixed_space;
  return device;
}

}  // namespace

Device device_from(const std::string& id) {
  Device device = bare_device(id);
  if (device.kind == DeviceKind::kUnknown) refuse_name(id);
  read_rest(device);
  return with_space(std::move(device));
}

Device recorded_device(const std::string& id) {
  if (kind_of(id) != nullptr) {
    try {
      return device_from(id);
    } catch (const ConfigError&) {  // its kind is all that is known
    }
  }
  return with_space(bare_device(id));
}

const DeviceFacts& facts_of(DeviceKind kind) {
  static constexpr DeviceFacts kNone;
  const auto* row = std::ranges::find(kKinds, kind, &DeviceFacts::kind);
  return row == kKinds.end() ? kNone : *row;
}

std::vector<std::string> device_examples() {
  std::vector<std::string> examples;
  examples.reserve(kKinds.size());
  for (const auto& kind : kKinds) examples.emplace_back(kind.example);
  return examples;
}

std::string emulated_device(const std::string& card) {
  return fmt::format("{}:{}", facts_of(DeviceKind::kEmulated).word, card);
}

std::string card_text(const Device& device) {
  std::string text = device.card;
  for (const auto& [name, value] : device.options) text += fmt::format(",{}={}", name, value);
  return text;
}

bool is_emulated(const CaseResult& result) {
  const auto* kind = kind_of(result.spec.device);
  return result.emulation || (kind != nullptr && kind->kind == DeviceKind::kEmulated);
}

}  // namespace peakbench::records
