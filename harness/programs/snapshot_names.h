// Categories of a snapshot's memory, inferred from stacks, lifetimes and annotations. For the
// module's own use. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "programs/snapshot_work.h"
#include "trace/trace.h"

namespace peakbench::programs {

// The events [first, end) of an annotation.
struct EventSpan {
  std::uint64_t first = 0, end = 0;
  bool is_open = false;  // the dump was in it

  bool contains(std::uint64_t event) const { return first <= event && event < end; }
};

// Of Optimizer.step#... outside of a backward, and of Optimizer.zero_grad#..., in order.
struct OptimizerSpans {
  std::vector<EventSpan> steps, zero_grads;
};

// Adds names to a trace. The first rule that applies to an allocation decides; what no rule applies
// to has no name, and what only outlives its step is kept.
//
//   workspace         a handle of cuBLAS made it
//   optimizer state   an optimizer's step() made it, in its own code, and it outlives that step(),
//   which
//                     ended before the dump
//   gradient          made in backward, and freed in zero_grad() or alive behind the step(). Of the
//                     latter there are at most as many of one size as of parameters' candidates
//   parameter         a candidate, if there are as many of this size as gradients; or one that a
//                     line of torch.nn made which made such a one, or as many of each size
//
// Candidates of parameters are alive from before the first call of a model to the last step().
void name_snapshot_memory(const SnapshotWork& work, const OptimizerSpans& optimizers,
                          trace::Trace& trace);

}  // namespace peakbench::programs
