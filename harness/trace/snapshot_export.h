#pragma once

#include <string>

#include "trace/lifetimes.h"
#include "trace/output_file.h"

namespace peakbench::trace {

// The keys and fixed values of PyTorch's memory snapshots. For the module's own use.
//
// Source: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py,
// torch/utils/viz/MemoryViz.js.

inline constexpr const char* kNumbered =
    "emulated card: time_us is the event's number, there is no clock";

struct SnapshotWords {
  using Word = PickleWriter::Word;
  Word device{"device"}, address{"address"}, total_size{"total_size"},
      allocated_size{"allocated_size"}, active_size{"active_size"},
      requested_size{"requested_size"}, stream{"stream"}, segment_type{"segment_type"},
      large{"large"}, small{"small"}, segment_pool_id{"segment_pool_id"},
      is_expandable{"is_expandable"}, blocks{"blocks"}, size{"size"}, state{"state"},
      inactive{"inactive"}, active_pending_free{"active_pending_free"},
      active_allocated{"active_allocated"}, frames{"frames"}, filename{"filename"}, line{"line"},
      name{"name"}, action{"action"}, addr{"addr"}, time_us{"time_us"}, category{"category"},
      unknown{"unknown"}, alloc{"alloc"}, free_requested{"free_requested"},
      free_completed{"free_completed"}, segment_alloc{"segment_alloc"},
      segment_free{"segment_free"}, segment_map{"segment_map"}, segment_unmap{"segment_unmap"},
      oom{"oom"}, device_free{"device_free"}, snapshot{"snapshot"}, op{"operator"},
      module{"module"}, step{"step"}, peakbench{"peakbench"}, numbered{kNumbered};
};

// A PyTorch memory snapshot (snapshot.pickle) of a trace, for `python -m torch.cuda._memory_viz`
// and pytorch.org/memory_viz. docs/reference/trace.md says what is synthesised where.

// Pickle protocol 2, written atomically. Every space is a device of the snapshot, in order. A space
// without segments (cpu) gets one segment for each stretch of addresses it used. Entries carry
// `category`; `frames` are operator and module. On an emulated card, time_us is the event's number.
// Throws HostError with the path where it cannot be written.
void write_memory_snapshot(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                           const std::string& path);

}  // namespace peakbench::trace
