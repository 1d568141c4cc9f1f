// How large the blocks of an allocation history are. A snapshot says of an allocation what was
// asked for, and of segments where they lie; the block follows from the rules of PyTorch's caching
// allocator, as its address is known. For the room's own use.
//
// Source: c10/cuda/CUDACachingAllocator.cpp: round_size, should_split, try_merge_blocks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace peakbench::program {

class SnapshotBlocks {
 public:
  // max_split_size; below 0: blocks of any size are split. roundup_power2_divisions: of sizes from
  // 1, 2, 4, ... MiB; empty: none.
  SnapshotBlocks(std::int64_t most_split_bytes, std::vector<std::int64_t> divisions)
      : most_split_bytes_(most_split_bytes), divisions_(std::move(divisions)) {}

  void add_segment(std::uint64_t address, std::int64_t bytes, bool expandable);
  void remove_segment(std::uint64_t address, std::int64_t bytes);

  struct Segment {
    std::int64_t bytes = 0;
    bool expandable = false;
  };
  // In order of address; expandable ones that touch are one.
  const std::map<std::uint64_t, Segment>& segments() const { return segments_; }

  // A block of known size.
  void place(std::uint64_t address, std::int64_t bytes) { blocks_[address] = bytes; }
  // What the allocator makes of a size that is asked for.
  std::int64_t rounded(std::int64_t requested) const;
  // The size of the block that holds `requested` bytes: what they are rounded up to, or all that is
  // free there where the allocator does not split it. Of an address in no known segment: rounded.
  std::int64_t allocate(std::uint64_t address, std::int64_t requested);
  void release(std::uint64_t address) { blocks_.erase(address); }

 private:
  std::int64_t free_at(std::uint64_t address, bool& expandable, bool& small) const;

  std::int64_t most_split_bytes_;
  std::vector<std::int64_t> divisions_;
  std::map<std::uint64_t, Segment> segments_;
  std::map<std::uint64_t, std::int64_t> blocks_;
};

// As the allocator rounds without settings of its own: to 512 bytes, at least one.
std::int64_t rounded_block(std::int64_t requested);

}  // namespace peakbench::program
