// The keys and fixed values of PyTorch's memory snapshots. For the room's own use.
//
// Source: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py,
// torch/utils/viz/MemoryViz.js.
#pragma once

#include "trace/pickle_writer.h"

namespace peakbench::trace {

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

}  // namespace peakbench::trace
