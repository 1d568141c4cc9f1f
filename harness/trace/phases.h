// Determines the phases of a trace from its scopes, afterwards. Pure.
//
// A phase lasts until the program reports another one. Inside a reported optimizer step, scopes
// show another forward and backward (a second pass over the batch, as in sharpness-aware
// minimization):
//
// - A module entered with grad mode on begins a forward. Not while an update runs on any thread, or
//   a recomputation or a node of backward on its own: hooks of a backward and repeated blocks enter
//   modules, too.
// - A node of backward begins a backward. Not while an update runs on any thread (an update may run
//   a backward itself), or a recomputation on its own.
// - An update begins the optimizer step again. Not inside a node of backward on its thread: the
//   update of a schedule in backward is part of that backward.
//
// Updates, recomputations and nodes belong to a thread: backward of a CUDA device runs on its own
// thread. An event in several recomputations belongs to the innermost one.
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
