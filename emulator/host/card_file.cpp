#include <fmt/format.h>

#include <climits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/regular_file.h"
#include "core/convolutions.h"
#include "emulator/host/card.h"

namespace peakbench::emulator {
namespace {

using nlohmann::json;

// What cudaDeviceProp has room for; and a card goes to its programs as a variable, which has
// limits.
constexpr std::size_t kMostText = 255;

// What no card is outside of. PyTorch and the kernels that it compiles divide by quotients and
// products of these numbers, so that an absurd one ends the process in the middle of an operator.
struct Bounds {
  std::uint64_t least = 1, most = INT_MAX;
};
constexpr std::uint64_t kKiB = 1024;
// CUDA C++ programming guide, technical specifications per compute capability: blocks have up to
// 1024 threads everywhere, warps 32, a multiprocessor has at least 32 Ki registers and a block at
// least 48 KiB of shared memory.
constexpr Bounds kMultiprocessors{1, 4096};
constexpr Bounds kThreads{kMaxThreadsPerBlock, 8192};
constexpr Bounds kBlocks{1, 1024};
constexpr Bounds kRegisters{32 * kKiB, 4096 * kKiB};
constexpr Bounds kWarp{32, 32};
constexpr Bounds kShared{48 * kKiB, INT_MAX};
constexpr Bounds kMemory{1, std::uint64_t{1} << 44};
constexpr Bounds kBusBits{8, INT_MAX};
// A second of a card: from a gigabyte or a gigaflop to more than any has.
constexpr Bounds kRate{1'000'000'000, 1'000'000'000'000'000'000};

bool is_text(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= kMostText;
}

class CardReader {
 public:
  CardReader(const std::string& path, const json& values) : path_(path), values_(values) {}

  // Of a number: a count that somebody divides by, or a size, never 0.
  template <typename Value>
  void read(const char* key, Value& out, const Bounds& range = {}) {
    known_.insert(key);
    if (!values_.contains(key)) fail(key, "missing");
    const json& entry = values_.at(key);
    if (!entry.is_object() || !entry.contains("value") || !entry.contains("source")) {
      fail(key, R"(expected {"value": ..., "source": "where it is from"})");
    }
    const json& value = entry.at("value");
    if constexpr (std::is_same_v<Value, bool>) {
      if (!value.is_boolean()) fail(key, "expected true or false");
    } else if constexpr (std::is_arithmetic_v<Value>) {
      if (!value.is_number_unsigned() || value.get<std::uint64_t>() < range.least ||
          value.get<std::uint64_t>() > range.most)
        fail(key, fmt::format("expected {}, got {}", in_words(range), describe(value)));
    } else if (!is_text(value)) {
      fail(key, fmt::format("expected a text of at most {} bytes", kMostText));
    }
    out = value.get<Value>();
  }

  // The same of what a card need not have.
  template <typename Value>
  void read_if_known(const char* key, Value& out, const Bounds& range) {
    known_.insert(key);
    if (values_.contains(key)) read(key, out, range);
  }

  void refuse_unknown() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : values_.items()) {
      if (!known_.contains(key)) {
        throw ConfigError(
            fmt::format("{}: unknown value \"{}\"{}", path_, key, suggestion(key, known)));
      }
    }
  }

  // Shared memory that a block may have is no more than a multiprocessor has.
  void check_order(const char* smaller, std::uint64_t one, const char* larger,
                   std::uint64_t other) const {
    if (one > other)
      fail(larger, fmt::format("expected at least {} ({}), got {}", one, smaller, other));
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}: {}", path_, key, what));
  }

 private:
  static std::string in_words(const Bounds& range) {
    if (range.least == range.most) return fmt::format("{}, as every card has", range.least);
    return fmt::format("a whole number from {} to {}", range.least, range.most);
  }

  const std::string& path_;
  const json& values_;
  std::set<std::string> known_;
};

// One or two of them.
std::optional<int> digits(const std::string& text) {
  const bool all = text.find_first_not_of("0123456789") == std::string::npos;
  return all && !text.empty() && text.size() <= 2 ? std::optional(std::stoi(text)) : std::nullopt;
}

void read_capability(CardReader& reader, CardFacts& facts) {
  std::string capability;
  reader.read("compute_capability", capability);
  const auto dot = capability.find('.');
  const auto major = digits(capability.substr(0, dot));
  const auto minor = digits(dot == std::string::npos ? "" : capability.substr(dot + 1));
  if (!major || !minor) reader.fail("compute_capability", "expected MAJOR.MINOR, like \"9.0\"");
  facts.major = *major;
  facts.minor = *minor;
}

void read_shared_memory(CardReader& reader, CardFacts& facts) {
  constexpr const char *kBlock = "shared_memory_per_block_bytes",
                       *kOptIn = "shared_memory_per_block_optin_bytes",
                       *kAll = "shared_memory_per_multiprocessor_bytes";
  reader.read(kBlock, facts.shared_memory_per_block_bytes, kShared);
  reader.read(kOptIn, facts.shared_memory_per_block_optin_bytes, kShared);
  reader.read(kAll, facts.shared_memory_per_multiprocessor_bytes, kShared);
  reader.check_order(kBlock, facts.shared_memory_per_block_bytes, kOptIn,
                     facts.shared_memory_per_block_optin_bytes);
  reader.check_order(kOptIn, facts.shared_memory_per_block_optin_bytes, kAll,
                     facts.shared_memory_per_multiprocessor_bytes);
}

void read_rates(CardReader& reader, CardFacts& facts) {
  reader.read_if_known("memory_bytes_per_second", facts.memory_bytes_per_second, kRate);
  reader.read_if_known("fp32_flops_per_second", facts.fp32_flops_per_second, kRate);
  reader.read_if_known("tf32_flops_per_second", facts.tf32_flops_per_second, kRate);
  reader.read_if_known("fp16_flops_per_second", facts.fp16_flops_per_second, kRate);
  reader.read_if_known("bf16_flops_per_second", facts.bf16_flops_per_second, kRate);
  reader.read_if_known("fp8_flops_per_second", facts.fp8_flops_per_second, kRate);
}

void read_values(CardReader& reader, CardFacts& facts) {
  reader.read("name", facts.name);
  read_capability(reader, facts);
  reader.read("multiprocessor_count", facts.multiprocessor_count, kMultiprocessors);
  reader.read("total_memory_bytes", facts.total_memory_bytes, kMemory);
  reader.read("max_threads_per_multiprocessor", facts.max_threads_per_multiprocessor, kThreads);
  reader.read("max_blocks_per_multiprocessor", facts.max_blocks_per_multiprocessor, kBlocks);
  reader.read("registers_per_multiprocessor", facts.registers_per_multiprocessor, kRegisters);
  reader.read("warp_size", facts.warp_size, kWarp);
  read_shared_memory(reader, facts);
  reader.read("l2_cache_bytes", facts.l2_cache_bytes);
  reader.read("clock_khz", facts.clock_khz);
  reader.read("memory_clock_khz", facts.memory_clock_khz);
  reader.read("memory_bus_bits", facts.memory_bus_bits, kBusBits);
  reader.read("ecc", facts.ecc);
  reader.read("peer_access", facts.peer_access);
  read_rates(reader, facts);
  reader.refuse_unknown();
}

// What is said of a file says which.
template <typename Read>
auto said_of(const std::string& path, Read&& read) {
  try {
    return read();
  } catch (const RunFileError& error) {
    throw ConfigError(fmt::format("{}: {}", path, error.what()));
  }
}

// Beside the values. A misspelt `context_memory` would be an unknown one.
ContextMemories read_context(const json& document) {
  const Fields card(document);
  card.only({"id", "title", "values", "context_memory", kConvolutionWorkspaces});
  return read_context_memory(card);
}

// Whether the file has any.
bool check_convolutions(const std::string& path, const json& document) {
  if (!document.contains(kConvolutionWorkspaces)) return false;
  try {
    return !read_convolutions(document.at(kConvolutionWorkspaces)).empty();
  } catch (const std::invalid_argument& error) {
    throw ConfigError(fmt::format("{}: {}{}", path, kConvolutionWorkspaces, error.what()));
  }
}

}  // namespace

Card read_card_file(const std::filesystem::path& file) {
  const std::string path = file.string();
  const std::string text = files::read_regular_file(path, files::kMostSmallText);
  const json document = said_of(path, [&] { return parse_json(text); });
  if (!document.is_object())
    throw ConfigError(fmt::format("{}: expected a card, a JSON object", path));
  for (const char* key : {"id", "title"}) {
    if (!document.contains(key) || !is_text(document.at(key))) {
      throw ConfigError(
          fmt::format("{}: {}: missing, or no text of at most {} bytes", path, key, kMostText));
    }
  }
  if (!document.contains("values") || !document.at("values").is_object()) {
    throw ConfigError(fmt::format("{}: values: missing, or not an object", path));
  }
  Card card;
  card.facts.id = document.at("id");
  card.title = document.at("title");
  CardReader reader(path, document.at("values"));
  read_values(reader, card.facts);
  card.context_memory = said_of(path, [&] { return read_context(document); });
  if (check_convolutions(path, document))
    card.facts.measured_in = std::filesystem::absolute(file).string();
  return card;
}

}  // namespace peakbench::emulator
