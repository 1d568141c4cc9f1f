// From a recorded trace to what people ask: categories, the peak, what was alive then, a timeline. Pure functions.
//
// Guarantee: at every event, the bytes of all categories (allocator_slack included) sum to the allocator's own
// allocated bytes; at the peak they sum to peak_allocated_bytes exactly. A violation throws TraceError.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "result/case.h"
#include "trace/trace.h"

namespace peakbench::trace {

enum class Category : std::uint8_t {
  kParameter, kBuffer, kGradient, kOptimizerState, kInput, kActivation, kRecomputedActivation,
  kTemporary, kWorkspace, kAllocatorSlack,
};
inline constexpr std::size_t kCategoryCount = 10;
const char* to_string(Category category);  // "parameter", ..., the field's own words
const char* to_string(Phase phase);        // "build", "forward", "backward", "optimizer_step"

// One allocation from event to free. `last` is the freeing event's index, or events.size() while alive at the end.
struct Lifetime {
  std::uint64_t first = 0, last = 0;
  Category category = Category::kTemporary;  // never kAllocatorSlack: slack is block_bytes - requested_bytes
  std::int32_t name = kNone;                 // index in Trace::names
};

// Pairs allocs with frees, in order of `first`. A name wins; else activation = allocated in forward and alive at the
// end of that forward; recomputed_activation likewise for a recomputation; workspace = CUDA, unnamed, allocated in
// a step and never freed; the rest temporary. Throws TraceError on a free without an alloc or an address used twice.
std::vector<Lifetime> lifetimes(const Trace& trace);

struct Peak {
  std::uint64_t event = 0;  // first event at which allocated bytes of the space reach their maximum, in steps >= 0
  std::int64_t allocated_bytes = 0, requested_bytes = 0;
  std::array<std::int64_t, kCategoryCount> by_category{};
};
Peak find_peak(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = 0);

// The Memory record of a whole trace (all but worker_peak_rss_bytes and context_bytes).
result::Memory summarise(const Trace& trace);

}  // namespace peakbench::trace
