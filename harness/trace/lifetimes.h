// From a recorded trace to lifetimes: each allocation with its free and its category. Pure.
//
// Guarantee: at every event, the bytes of all categories (allocator_slack included) sum to the
// allocator's own allocated bytes. A violation throws TraceError, which names the event.
#pragma once

#include <array>
#include <vector>

#include "trace/trace.h"

namespace peakbench::trace {

enum class Category : std::uint8_t {
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput,
  kActivation,
  kRecomputedActivation,
  kTemporary,
  kWorkspace,
  kCommunication,
  kGraphPool,
  kKept,
  kAllocatorSlack,
};
inline constexpr std::size_t kCategoryCount = 13;

const char* to_string(Category category);  // "parameter", ..., the field's own words
const char* to_string(Phase phase);        // "build", "forward", "backward", "optimizer_step"
const char* to_string(EventKind kind);     // "alloc", "free", "free_requested", ...
const char* to_string(ScopeKind kind);     // "phase", "module", "backward_node", ...
const char* to_string(Role role);          // the category's word
Category category_of(Role role);

// One allocation from event to free, alive at the events [first, last). On CUDA `last` is where the
// free was asked for: from there on max_memory_allocated does not count it. `released` is where the
// block could be given out again: `last`, or later while a stream was using it. Both are
// events.size() while alive at the end.
struct Lifetime {
  std::uint64_t first = 0, last = 0, released = 0;
  Category category = Category::kTemporary;  // never kAllocatorSlack: slack is block - requested
  std::int32_t name = kNone;                 // index in Trace::names
};

// Pairs allocs with frees by (space, address), in order of `first`. A name wins, the first one
// given; else graph_pool = allocated from a private pool while a CUDA graph was captured and alive
// at the capture's end; else kept = allocated before the first step and alive when the steps begin
// (where there are none: at the end), or alive when a later step begins; else recomputed_activation
// = allocated in a recomputation and alive at its end; else activation = allocated in forward and
// alive at the end of that forward, or where memory ran out in it; the rest temporary. Of a program
// also: input = made in the phase data, alive behind it and freed within the step; kept = made
// there and alive longer, and in the last step, which nothing outlives, what has the stack of such
// a one; activation = allocated in a call of evaluation or generation and alive at its end, or made
// behind such a call (a loss) and alive behind the next one and what follows that, or as large as
// two outputs of such calls that are alive then (torch.cat). In traces that
// do not name workspaces, one is, before all but the first kind of kept, what a `cuda` space has
// from the forward or backward of a step and was never freed (not in a step that ended out of
// memory: nothing had its chance there). A trace ended out of memory where no allocation follows
// the last failure. Nothing is made of address 0 (an allocation of no bytes). Throws TraceError on
// a free without an alloc, an address used twice, a block smaller than what was asked for, and a
// name, space, module or operator that is not there.
std::vector<Lifetime> lifetimes(const Trace& trace);

}  // namespace peakbench::trace
