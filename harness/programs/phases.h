#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recording/journal.h"
#include "trace/trace.h"

namespace peakbench::programs {

// Determines a program's phases and steps from its recorded calls, afterwards. Pure.
//
// A phase lasts until the next call that begins one:
// - build: until the last parameter or buffer was made before the first call of a model;
// - forward: a model called in training mode with gradients, and what follows, its loss. Also a
//   model that is not in training mode, if a backward runs the graph that it recorded;
// - backward: a call of autograd's engine outside of an update;
// - optimizer_step: an optimizer's step, and everything between backward and it (unscaling,
//   clipping, reducing). A step inside of a backward (a hook that updates) remains backward.
//   Everything before a step that calls the model itself (a closure) is data;
// - evaluation, generation: any other call of a model, until it returns. If it records a graph that
//   no backward runs, a module's scope marks that (trace.h);
// - checkpoint: torch.save;
// - data: everything else.
//
// A step is one round of updates. It ends with the last update before an optimizer runs again, or
// with the backward that contains that update. Without updates, each backward is a step. Everything
// after the last round belongs to it, unless it is a forward.

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

// The scopes of a trace whose steps end so. `built`: the event after the last parameter
// that was made before the first call of a model. `ended_well`: the program did not fail, so a
// graph that no backward has run by then was never needed.
std::vector<trace::ScopeMark> scopes_of(const std::vector<TimedMark>& marks,
                                        const std::vector<std::uint64_t>& step_ends,
                                        std::uint64_t built, bool ended_well);

// Finds the copies of a program that change dtypes, as scopes of its trace. Pure.

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
