#include "core/card.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace peakbench::emulator {
namespace {

// One list of fields for both directions.
template <typename Visit>
void visit_fields(CardFacts& card, Visit&& visit) {
  visit("id", card.id);
  visit("name", card.name);
  visit("major", card.major);
  visit("minor", card.minor);
  visit("binary_arch", card.binary_arch);
  visit("multiprocessor_count", card.multiprocessor_count);
  visit("max_threads_per_multiprocessor", card.max_threads_per_multiprocessor);
  visit("max_blocks_per_multiprocessor", card.max_blocks_per_multiprocessor);
  visit("registers_per_multiprocessor", card.registers_per_multiprocessor);
  visit("warp_size", card.warp_size);
  visit("clock_khz", card.clock_khz);
  visit("memory_clock_khz", card.memory_clock_khz);
  visit("memory_bus_bits", card.memory_bus_bits);
  visit("ecc", card.ecc);
  visit("peer_access", card.peer_access);
  visit("total_memory_bytes", card.total_memory_bytes);
  visit("context_bytes", card.context_bytes);
  visit("shared_memory_per_block_bytes", card.shared_memory_per_block_bytes);
  visit("shared_memory_per_block_optin_bytes", card.shared_memory_per_block_optin_bytes);
  visit("shared_memory_per_multiprocessor_bytes", card.shared_memory_per_multiprocessor_bytes);
  visit("l2_cache_bytes", card.l2_cache_bytes);
  visit("memory_bytes_per_second", card.memory_bytes_per_second);
  visit("fp32_flops_per_second", card.fp32_flops_per_second);
  visit("tf32_flops_per_second", card.tf32_flops_per_second);
  visit("fp16_flops_per_second", card.fp16_flops_per_second);
  visit("bf16_flops_per_second", card.bf16_flops_per_second);
  visit("fp8_flops_per_second", card.fp8_flops_per_second);
  visit("count", card.count);
  visit("late_streams", card.late_streams);
  visit("soon_streams", card.soon_streams);
  visit("driver_cuda_version", card.driver_cuda_version);
  visit("cuda_version", card.cuda_version);
  visit("cudnn_version", card.cudnn_version);
  visit("nccl_version", card.nccl_version);
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
