// From the annotations and stacks of a snapshot to ranges, phases, steps and categories of its
// events. For the module's own use. Pure.
#pragma once

#include <cstdint>

#include "programs/snapshot.h"
#include "trace/trace.h"

namespace peakbench::programs {

// Events are as history_of() makes them, whose Event::range is the entry's label, in
// Snapshot::words, and whose Event::thread says which are of autograd's engine (snapshot_work.h).
inline constexpr std::int32_t kWorkspaceOperator = 0;  // Event::op of a handle's own memory

enum class PhaseSource : std::uint8_t { kNone, kAnnotations, kStacks };

// Takes a snapshot's annotations into a trace. Events must have times of the same clock.
//
// Ranges are those of the annotations that PyTorch does not open itself. What the program labelled
// (user_metadata) is in a range of that name, within those.
//
// Phases are inferred if stacks show a backward:
//
//   call of a model   stacks with Module.__call__; forward, if a backward frees what it made or is
//                     next, else evaluation
//   backward          autograd's engine: its frames of C++, or memory without any Python frame
//   optimizer_step    Optimizer.step#..., else stacks of torch.optim
//
// and follow from these as for a traced program (programs/phases.h), which also has categories
// (snapshot_names.h). Without such stacks, optimizer_step is Optimizer.step#..., and all else
// is build.
//
// A step begins with a range ProfilerStep#..., or, without these ranges, after a round of updates.
PhaseSource take_annotations(const Snapshot& snapshot, trace::Trace& trace);

}  // namespace peakbench::programs
