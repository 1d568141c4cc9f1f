#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trace/segments.h"
#include "trace/trace.h"

namespace peakbench::programs {

// Block sizes of an allocation history. A snapshot has the requested sizes of allocations, and the
// addresses of segments. As addresses are known, the blocks follow from the rules of PyTorch's
// caching allocator. For the module's own use.
//
// Source: c10/cuda/CUDACachingAllocator.cpp: round_size, should_split, try_merge_blocks.

class SnapshotBlocks {
 public:
  // max_split_size; below 0: blocks of any size are split. roundup_power2_divisions: of sizes from
  // 1, 2, 4, ... MiB; empty: none.
  SnapshotBlocks(std::int64_t most_split_bytes, std::vector<std::int64_t> divisions)
      : most_split_bytes_(most_split_bytes), divisions_(std::move(divisions)) {}

  trace::SegmentMap segments;  // their streams are not looked at

  // A block of known size.
  void place(std::uint64_t address, std::int64_t bytes) { blocks_[address] = bytes; }
  // The size that the allocator rounds a request to.
  std::int64_t rounded(std::int64_t requested) const;
  // The size of the block that holds `requested` bytes: what they are rounded up to, or all that is
  // free there where the allocator does not split it. Of an address in no known segment: rounded.
  std::int64_t allocate(std::uint64_t address, std::int64_t requested);
  void release(std::uint64_t address) { blocks_.erase(address); }

 private:
  std::int64_t most_split_bytes_;
  std::vector<std::int64_t> divisions_;
  std::map<std::uint64_t, std::int64_t> blocks_;
};

// As the allocator rounds without settings of its own: to 512 bytes, at least one.
std::int64_t rounded_block(std::int64_t requested);

// A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) as records. For the module's own
// use.
//
// Source: torch/csrc/cuda/memory_snapshot.cpp, which writes it, and torch/cuda/_memory_viz.py.

// What frames of C++ show of an entry, where they were recorded (stacks="all").
enum class NativeWork : std::uint8_t {
  kOther,
  kBackward,  // autograd's engine called it
  kWorkspace  // a handle of cuBLAS made it, for itself
};

// An entry of `device_traces`.
struct SnapshotEntry {
  trace::EventKind kind = trace::EventKind::kAlloc;
  NativeWork work = NativeWork::kOther;
  std::int32_t stack = trace::kNone;  // in Snapshot::frames: the innermost
  std::int32_t label = trace::kNone;  // in Snapshot::words: the program's user_metadata
  std::uint64_t address = 0;          // out of memory: what the device had free
  std::int64_t bytes = 0;             // of allocations: as asked for
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
};

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0, requested_bytes = 0;
  std::int32_t stack = trace::kNone;
};

struct SnapshotSegment {
  std::int64_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  bool expandable = false;
  std::vector<SnapshotBlock> blocks;  // that are allocated
};

// Where a range of record_function, or one that PyTorch opens itself, begins or ends.
struct SnapshotAnnotation {
  std::int32_t name = trace::kNone;  // in Snapshot::words
  bool ends = false;
  std::int64_t time_us = 0;
};

struct Snapshot {
  std::vector<SnapshotSegment> segments;              // when it was dumped
  std::vector<std::vector<SnapshotEntry>> histories;  // what was recorded, a device each
  std::vector<SnapshotAnnotation> annotations;
  std::vector<trace::StackFrame> frames;
  std::vector<std::string> files, functions, words;
  std::int64_t most_split_bytes = -1;   // max_split_size; below 0: none
  std::vector<std::int64_t> divisions;  // roundup_power2_divisions of 1, 2, 4, ... MiB
};

// Frames of C++, and those without a file, are left out. Throws ConfigError with the path: as
// Pickle::read(), and where it is a pickle of something else.
Snapshot read_snapshot(const std::string& path);

}  // namespace peakbench::programs
