// The least memory that a case runs in, found by running it under limits: no formula knows it, as
// the allocator gives back what it caches before it fails.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "result/case.h"
#include "search/boundary.h"

namespace peakbench::search {

// One run with so much memory on the card, the CUDA context's not counted; nullopt: interrupted.
using RunUnderLimit = std::function<std::optional<result::CaseResult>(std::int64_t bytes)>;

struct LeastMemory {
  // It ran in this, and not in 2 MiB less (below 2 MiB there is nothing to run in).
  std::optional<std::int64_t> bytes;
  // Why it is not known, or what speaks against it: that it runs in less, too, or not in a little
  // more.
  std::string note;
  std::int64_t runs = 0;  // that it took
};

// What is known of the case before.
struct KnownPeaks {
  std::int64_t allocated_bytes = 0;        // it hardly runs in less
  std::int64_t reserved_bytes = 0;         // and runs in this, most likely
  std::optional<std::int64_t> card_bytes;  // it ran on a card of so much
};

// `beside`: as of largest_that_runs().
LeastMemory find_least_memory(const KnownPeaks& known, const RunUnderLimit& run, int beside = 3);

// What one run says of memory.
Answer answer_of(const result::CaseResult& result);

}  // namespace peakbench::search
