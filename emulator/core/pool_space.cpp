#include "core/pool_space.h"

#include <iterator>

namespace peakbench::emulator {

void PoolSpace::add_chunk(std::uint64_t base, std::uint64_t bytes) {
  chunks_[base] = free_[base] = bytes;
  bytes_ += bytes;
  free_bytes_ += bytes;
}

std::uint64_t PoolSpace::take(std::uint64_t bytes) {
  auto best = free_.end();
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    if (piece->second < bytes) continue;
    if (best == free_.end() || piece->second < best->second) best = piece;
  }
  if (best == free_.end()) return 0;
  const auto [base, size] = *best;
  free_.erase(best);
  if (size > bytes) free_[base + bytes] = size - bytes;
  free_bytes_ -= bytes;
  return base;
}

void PoolSpace::give_back(std::uint64_t base, std::uint64_t bytes) {
  free_bytes_ += bytes;
  const auto next = free_.lower_bound(base);
  if (next != free_.end() && next->first == base + bytes && !chunks_.contains(next->first)) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(base);
  if (after != free_.begin() && !chunks_.contains(base)) {
    const auto before = std::prev(after);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  free_[base] = bytes;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> PoolSpace::remove_free_chunk() {
  auto largest = chunks_.end();
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    const auto piece = free_.find(chunk->first);
    if (piece == free_.end() || piece->second != chunk->second) continue;
    if (largest == chunks_.end() || chunk->second > largest->second) largest = chunk;
  }
  if (largest == chunks_.end()) return std::nullopt;
  const auto removed = *largest;
  free_.erase(removed.first);
  chunks_.erase(largest);
  bytes_ -= removed.second;
  free_bytes_ -= removed.second;
  return removed;
}

std::pair<std::uint64_t, std::uint64_t> PoolSpace::chunk_of(std::uint64_t address) const {
  return *std::prev(chunks_.upper_bound(address));
}

}  // namespace peakbench::emulator
