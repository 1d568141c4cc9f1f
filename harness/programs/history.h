// From a snapshot of PyTorch to a trace. For the module's own use.
//
// What was alive before the recording began is allocated at the trace's beginning. Ranges, phases,
// steps and categories are those of programs/snapshot_phases.h.
#pragma once

#include <cstdint>
#include <optional>

#include "programs/snapshot.h"
#include "programs/snapshot_phases.h"
#include "records/case.h"
#include "trace/trace.h"

namespace peakbench::programs {

struct History {
  PhaseSource phases = PhaseSource::kNone;
  trace::Trace trace;  // own space: the device with the largest peak
  std::int64_t entries = 0;
  // Made before the recording began, or gone from a history that holds so many entries only.
  std::int64_t earlier = 0, earlier_bytes = 0;
  std::int64_t lost_frees = 0;      // of blocks that were allocated again without having been freed
  std::int64_t above_reserved = 0;  // by how much more was allocated than reserved, at most
  bool has_state_only = false;  // enabled="state": one entry at most, and the blocks at the dump
  // Where nothing was allocated after memory ran out.
  std::optional<records::OutOfMemory> out_of_memory;
};

// Throws std::invalid_argument, its sizes add up to more than 61 bits hold, or nothing was ever
// allocated.
History history_of(Snapshot snapshot);

}  // namespace peakbench::programs
