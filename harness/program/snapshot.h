// A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) as records. For the room's own
// use.
//
// Source: torch/csrc/cuda/memory_snapshot.cpp, which writes it, and torch/cuda/_memory_viz.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace peakbench::program {

enum class SnapshotAction : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,
};

// An entry of `device_traces`.
struct SnapshotEntry {
  SnapshotAction action = SnapshotAction::kAlloc;
  std::int32_t stack = trace::kNone;  // in Snapshot::frames: the innermost
  std::uint64_t address = 0;          // out of memory: what the device had free
  std::int64_t bytes = 0;             // of allocations: as asked for
  std::int64_t stream = 0;
  std::int64_t time_us = 0;
};

struct SnapshotBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0, requested_bytes = 0;
  bool pending = false;  // freed, while a stream still used it
  std::int32_t stack = trace::kNone;
};

struct SnapshotSegment {
  std::int64_t device = 0;
  std::uint64_t address = 0;
  std::int64_t bytes = 0, stream = 0;
  bool expandable = false;
  std::vector<SnapshotBlock> blocks;  // that are allocated
};

// Where a range of record_function, or one that PyTorch opens itself, begins or ends.
struct SnapshotAnnotation {
  std::string name;
  bool ends = false;
  std::int64_t time_us = 0;
};

struct Snapshot {
  std::vector<SnapshotSegment> segments;              // when it was dumped
  std::vector<std::vector<SnapshotEntry>> histories;  // what was recorded, a device each
  std::vector<SnapshotAnnotation> annotations;
  std::vector<trace::StackFrame> frames;
  std::vector<std::string> files, functions;
  std::int64_t most_split_bytes = -1;   // max_split_size; below 0: none
  std::vector<std::int64_t> divisions;  // roundup_power2_divisions of 1, 2, 4, ... MiB
};

// Frames of C++, and those without a file, are left out. Throws ConfigError with the path: as
// Pickle::read(), and where it is a pickle of something else.
Snapshot read_snapshot(const std::string& path);

}  // namespace peakbench::program
