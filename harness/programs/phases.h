#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recording/journal.h"
#include "trace/trace.h"

namespace peakbench::programs {

// From what a program was seen to do to its phases and steps, after the fact. Pure.
//
// A phase lasts until the next thing is seen:
// - build: until the last parameter or buffer was made before a model is first called;
// - forward: a model called in training with gradients, and what follows, its loss; one that is not
//   in training mode too, where a backward runs what it recorded;
// - backward: a call of autograd's engine, not of one inside an update;
// - optimizer_step: an optimizer's step, and what comes between backward and it (unscaling,
//   clipping, reducing). One inside of a backward (a hook that updates) stays backward; what comes
//   before one that calls the model itself (a closure) is data;
// - evaluation, generation: a model called otherwise, until the call returns; where it records a
//   graph that no backward runs, a module's scope says so (trace.h);
// - checkpoint: torch.save;
// - data: everything else.
// A step is one round of updates: it ends with the last one before an optimizer has its turn again,
// or, where that one is inside of a backward, with this. Where nothing updates, each backward is a
// step. What comes after the last round belongs to it, unless
// it is a forward.

// Of a mark that a call ends: it recorded a graph.
inline constexpr std::int32_t kWithGraph = 1;

// Something began or ended on a thread, before the event of this number.
struct TimedMark {
  std::uint64_t event = 0;
  recording::Mark mark = recording::Mark::kForwardBegins;
  std::int32_t thread = 0;
  std::int32_t value = 0;
  std::int32_t call = 0;  // of a model, that it begins, ends or differentiates
};

// The events behind which a step ends and another begins.
std::vector<std::uint64_t> step_ends(const std::vector<TimedMark>& marks);

// The scopes of a trace with so many events; `built`: the event behind the last parameter that was
// made before a model was called; `ended_well`: the program did not fail, so that what no backward
// ran until then was for none.
std::vector<trace::ScopeMark> scopes_of(const std::vector<TimedMark>& marks, std::uint64_t built,
                                        bool ended_well);

// Which copies of a program are told by their dtypes, as scopes of its trace. Pure.

// A copy begins or ends on a thread, before the event of this number.
struct CopyMark {
  std::uint64_t event = 0;
  bool ends = false;
  std::int32_t thread = 0;
  recording::Copy copy = recording::Copy::kLarger;
  std::optional<std::uint64_t> source;  // the event that allocated what is copied, where known
};

// Adds scopes to a trace that has its names: of each copy to a larger dtype, and of each copy to a
// smaller one of what is a parameter. `marks` are in order; an end without a beginning is left out.
void add_copies(trace::Trace& trace, const std::vector<CopyMark>& marks);

}  // namespace peakbench::programs
