#include "core/card.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace peakbench::emulator {
namespace {

// One list of fields for both directions.
template <typename Visit>
void visit_fields(CardFacts& card, Visit&& visit) {
#define VISIT(field) visit(#field, card.field);
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(
      VISIT, id, name, major, minor, binary_arch, multiprocessor_count,
      max_threads_per_multiprocessor, max_blocks_per_multiprocessor, registers_per_multiprocessor,
      warp_size, clock_khz, memory_clock_khz, memory_bus_bits, ecc, peer_access, total_memory_bytes,
      context_bytes, shared_memory_per_block_bytes, shared_memory_per_block_optin_bytes,
      shared_memory_per_multiprocessor_bytes, l2_cache_bytes, memory_bytes_per_second,
      fp32_flops_per_second, tf32_flops_per_second, fp16_flops_per_second, bf16_flops_per_second,
      fp8_flops_per_second, count, late_streams, soon_streams, driver_cuda_version, cuda_version,
      cudnn_version, nccl_version, measured_in, measured_elsewhere))
#undef VISIT
}

}  // namespace

std::string to_json(const CardFacts& card) {
  nlohmann::json json;
  visit_fields(const_cast<CardFacts&>(card),
               [&](const char* key, const auto& value) { json[key] = value; });
  return json.dump();
}

CardFacts card_from_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw std::invalid_argument("not a JSON object");
  CardFacts card;
  visit_fields(card, [&](const char* key, auto& value) {
    try {
      json.at(key).get_to(value);
    } catch (const nlohmann::json::exception& error) {
      throw std::invalid_argument(std::string(key) + ": " + error.what());
    }
  });
  if (card.count < 1 || card.count > kMaxDevices) {
    throw std::invalid_argument("count: expected 1 to " + std::to_string(kMaxDevices));
  }
  return card;
}

}  // namespace peakbench::emulator
