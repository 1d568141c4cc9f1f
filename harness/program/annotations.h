// From the annotations of a snapshot to the ranges, phases and steps of its events. For the
// module's own use. Pure.
#pragma once

#include <vector>

#include "program/snapshot.h"
#include "trace/trace.h"

namespace peakbench::program {

// The events have the times of the annotations' clock. Ranges that PyTorch opens itself are none of
// the program's. Phases and steps are known where an optimizer's step is annotated:
//
//   phase            events
//   optimizer_step   in a range Optimizer.step#...
//   build            all others: forward and backward are not annotated
//
// A step begins with a range ProfilerStep#..., or, where there is none, behind a round of updates
// (program/phases.h).
void take_annotations(const std::vector<SnapshotAnnotation>& annotations, trace::Trace& trace);

}  // namespace peakbench::program
