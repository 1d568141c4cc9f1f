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

// Pairs allocations with frees by (space, address), in order of `first`, and decides the category
// of each:
//
// 1. The first name that it was given decides.
// 2. Else the first rule of the table in lifetimes.cpp that applies to its lifetime decides.
// 3. In programs, allocations of one stack are alike. The last of a list that grew is kept, as
//    those before it. The last losses of an evaluation are activations, as are outputs that were
//    joined.
//
// A trace ended out of memory if no allocation follows the last failure. An allocation of no bytes
// (address 0) is left out. Throws TraceError for a free without an allocation, an address that is
// used twice, a block smaller than its request, and an unknown name, space, module or operator.
std::vector<Lifetime> lifetimes(const Trace& trace);

}  // namespace peakbench::trace
