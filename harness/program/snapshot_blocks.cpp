#include "program/snapshot_blocks.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace peakbench::program {
namespace {

// c10/core/AllocatorConfig.h
constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = 1 << 20;    // what is left of a large block is not split below
constexpr std::int64_t kSmallBuffer = 2 << 20;  // a segment of small blocks

}  // namespace

std::int64_t rounded_block(std::int64_t requested) {
  return std::max(kMinBlockSize, (requested + kMinBlockSize - 1) / kMinBlockSize * kMinBlockSize);
}

// AcceleratorAllocatorConfig::roundup_power2_divisions() and roundup_power2_next_division().
std::int64_t SnapshotBlocks::rounded(std::int64_t requested) const {
  if (divisions_.empty() || requested < kMinBlockSize) return rounded_block(requested);
  const auto size = static_cast<std::uint64_t>(requested);
  constexpr int kFirst = 20;  // 1 MiB
  const auto interval = std::clamp<int>(static_cast<int>(std::bit_width(size)) - 1 - kFirst, 0,
                                        static_cast<int>(divisions_.size()) - 1);
  const auto divisions = static_cast<std::uint64_t>(divisions_[static_cast<std::size_t>(interval)]);
  if (divisions <= 1 || size <= kMinBlockSize * divisions) return rounded_block(requested);
  const auto step = std::bit_floor(size) >> (std::bit_width(divisions) - 1);
  return static_cast<std::int64_t>((size + step - 1) / step * step);
}

void SnapshotBlocks::add_segment(std::uint64_t address, std::int64_t bytes, bool expandable) {
  if (expandable) {
    if (const auto next = segments_.find(address + static_cast<std::uint64_t>(bytes));
        next != segments_.end() && next->second.expandable) {
      bytes += next->second.bytes;
      segments_.erase(next);
    }
    const auto after = segments_.lower_bound(address);
    if (after != segments_.begin()) {
      const auto before = std::prev(after);
      const auto end = before->first + static_cast<std::uint64_t>(before->second.bytes);
      if (before->second.expandable && end == address) {
        before->second.bytes += bytes;
        return;
      }
    }
  }
  segments_[address] = {bytes, expandable};
}

void SnapshotBlocks::remove_segment(std::uint64_t address, std::int64_t bytes) {
  auto at = segments_.upper_bound(address);
  if (at == segments_.begin()) return;
  --at;
  const auto begin = at->first;
  const auto held = at->second;
  const auto end = begin + static_cast<std::uint64_t>(held.bytes);
  const auto last = std::min(end, address + static_cast<std::uint64_t>(bytes));
  if (address >= end) return;
  segments_.erase(at);
  if (address > begin)
    segments_[begin] = {static_cast<std::int64_t>(address - begin), held.expandable};
  if (end > last) segments_[last] = {static_cast<std::int64_t>(end - last), held.expandable};
}

// From there to the next block or the segment's end; 0 in no segment.
std::int64_t SnapshotBlocks::free_at(std::uint64_t address, bool& expandable, bool& small) const {
  const auto after = segments_.upper_bound(address);
  if (after == segments_.begin()) return 0;
  const auto& [begin, segment] = *std::prev(after);
  auto end = begin + static_cast<std::uint64_t>(segment.bytes);
  if (address >= end) return 0;
  expandable = segment.expandable;
  small = segment.bytes == kSmallBuffer;
  if (const auto next = blocks_.upper_bound(address); next != blocks_.end())
    end = std::min(end, next->first);
  return static_cast<std::int64_t>(end - address);
}

std::int64_t SnapshotBlocks::allocate(std::uint64_t address, std::int64_t requested) {
  bool expandable = false, small = false;
  const auto rounded = this->rounded(requested);
  const auto free = free_at(address, expandable, small);
  const auto rest = free - rounded;
  const bool split = expandable || small ? rest >= kMinBlockSize
                                         : rest > kSmallSize && (most_split_bytes_ < 0 ||
                                                                 rounded < most_split_bytes_);
  const auto bytes = rest > 0 && !split ? free : rounded;
  blocks_[address] = bytes;
  return bytes;
}

}  // namespace peakbench::program
