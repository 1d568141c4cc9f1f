// From the scopes of a trace to its phases, after the fact. Pure.
//
// A phase is what the program said last that it does. Inside of an optimizer step that it said,
// another forward and backward (a second pass over the batch, as sharpness-aware minimization takes
// it) are seen by their scopes:
// - a module entered with grad mode on begins a forward, where no update is under way on any
//   thread, and on its own thread neither a recomputation nor a node of backward: hooks of a
//   backward, and blocks that run again, enter modules too;
// - a node of backward begins a backward, where no update is under way on any thread (one may
//   itself run a backward), and no recomputation on its own;
// - an update begins the optimizer step again, where it is in no node of backward on its thread:
//   the update of a schedule in backward is part of its backward.
// Updates, recomputations and nodes are a thread's: backward of a CUDA device runs on a thread of
// its own. An event in several recomputations is the innermost one's.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace peakbench::trace {

// Gives every event its phase, step, in_update, in_recompute and recompute. Recomputations count up
// in the order in which they begin. An end without a beginning changes nothing.
void decide_phases(Trace& trace);

struct PhaseOfStep {
  Phase phase = Phase::kBuild;
  std::int32_t step = kNone;
};

// What the event of this number has, or would have.
PhaseOfStep phase_at(const std::vector<ScopeMark>& scopes, std::uint64_t event);

// Where a thread was when so many scope marks had been made.
struct ScopePoint {
  std::uint64_t marks = 0;
  std::int32_t thread = 0;
};
struct PhaseOfPoint {
  Phase phase = Phase::kBuild;
  std::int32_t step = kNone;
  bool in_recompute = false;
};

// What an event there would have, point by point.
std::vector<PhaseOfPoint> phases_at(const std::vector<ScopeMark>& scopes,
                                    const std::vector<ScopePoint>& points);

}  // namespace peakbench::trace
