#include "host/card_file.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "result/errors.h"
#include "result/file.h"
#include "result/nearest.h"

namespace peakbench::emulator {
namespace {

using nlohmann::json;

class CardReader {
 public:
  CardReader(const std::filesystem::path& path, const json& values)
      : path_(path), values_(values) {}

  template <typename Value>
  void read(const char* key, Value& out) {
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
      if (!value.is_number_unsigned()) fail(key, "expected a whole number, not negative");
    } else if (!value.is_string()) {
      fail(key, "expected a text");
    }
    out = value.get<Value>();
  }

  void refuse_unknown() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : values_.items()) {
      if (!known_.contains(key)) {
        throw ConfigError(
            fmt::format("{}: unknown value \"{}\"{}", path_.string(), key, suggestion(key, known)));
      }
    }
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}: {}", path_.string(), key, what));
  }

 private:
  std::filesystem::path path_;
  const json& values_;
  std::set<std::string> known_;
};

void read_capability(CardReader& reader, CardFacts& facts) {
  std::string capability;
  reader.read("compute_capability", capability);
  char rest = 0;
  if (std::sscanf(capability.c_str(), "%d.%d%c", &facts.major, &facts.minor, &rest) != 2) {
    reader.fail("compute_capability", "expected MAJOR.MINOR, like \"9.0\"");
  }
}

void read_values(CardReader& reader, CardFacts& facts) {
  reader.read("name", facts.name);
  read_capability(reader, facts);
  reader.read("multiprocessor_count", facts.multiprocessor_count);
  reader.read("total_memory_bytes", facts.total_memory_bytes);
  reader.read("max_threads_per_multiprocessor", facts.max_threads_per_multiprocessor);
  reader.read("max_blocks_per_multiprocessor", facts.max_blocks_per_multiprocessor);
  reader.read("registers_per_multiprocessor", facts.registers_per_multiprocessor);
  reader.read("warp_size", facts.warp_size);
  reader.read("shared_memory_per_block_bytes", facts.shared_memory_per_block_bytes);
  reader.read("shared_memory_per_block_optin_bytes", facts.shared_memory_per_block_optin_bytes);
  reader.read("shared_memory_per_multiprocessor_bytes",
              facts.shared_memory_per_multiprocessor_bytes);
  reader.read("l2_cache_bytes", facts.l2_cache_bytes);
  reader.read("clock_khz", facts.clock_khz);
  reader.read("memory_clock_khz", facts.memory_clock_khz);
  reader.read("memory_bus_bits", facts.memory_bus_bits);
  reader.read("ecc", facts.ecc);
  reader.read("peer_access", facts.peer_access);
  if (facts.multiprocessor_count < 1) reader.fail("multiprocessor_count", "expected 1 or more");
  reader.refuse_unknown();
}

}  // namespace

Card read_card_file(const std::filesystem::path& path) {
  const json document = result::read_json_file(path.string());
  if (!document.is_object())
    throw ConfigError(fmt::format("{}: expected a card: an object", path.string()));
  for (const char* key : {"id", "title"}) {
    if (!document.contains(key) || !document.at(key).is_string()) {
      throw ConfigError(fmt::format("{}: {}: missing, or not a text", path.string(), key));
    }
  }
  if (!document.contains("values") || !document.at("values").is_object()) {
    throw ConfigError(fmt::format("{}: values: missing, or not an object", path.string()));
  }
  Card card;
  card.facts.id = document.at("id");
  card.title = document.at("title");
  CardReader reader(path, document.at("values"));
  read_values(reader, card.facts);
  return card;
}

}  // namespace peakbench::emulator
