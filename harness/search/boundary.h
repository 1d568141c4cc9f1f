#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"

namespace peakbench::search {

// Finds the largest whole number that runs, only by runs.
//
// For speed it assumes that a smaller number runs if a larger one does, and checks this around the
// result. No formula decides anything: a hint only chooses the next number to run.

enum class Answer {
  kRuns,
  kDoesNot,  // for want of memory
  kOther,    // anything else: this number is undecided, and the search ends
};

struct Tried {
  Answer answer = Answer::kOther;
  // Where the boundary may be, for all that this run says; taken as a place to look at.
  std::optional<std::int64_t> hint = std::nullopt;
};

using Try = std::function<Tried(std::int64_t)>;

// The range to search. `start` is the first number that is run. `likely_runs` and `likely_not` are
// assumed; if the boundary turns out to be next to one of them, it is run, too.
struct Bounds {
  std::int64_t first = 1, last = 1;  // no number outside of these is run
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> likely_runs = std::nullopt, likely_not = std::nullopt;
};

struct Boundary {
  // Both were run; next to each other. No `runs`: not even `first` does. No `does_not`: `last`
  // runs.
  std::optional<std::int64_t> runs, does_not;
  // Ended by a number that was undecided. Then the two above are only as far as the search came,
  // and need not be adjacent.
  std::optional<std::int64_t> stopped_at;
  // Beside the boundary, against what was assumed: smaller ones that do not run, larger ones that
  // do.
  std::vector<std::int64_t> against;
  // All that were run.
  std::map<std::int64_t, Answer> tried;
};

// `beside`: how many numbers on each side of the boundary are run at least, including the two
// around it. No number is run twice.
Boundary largest_that_runs(const Bounds& bounds, const Try& run, int beside = 3);

// Finds the least memory that a case runs in, by running it under limits. No formula can give it,
// because the allocator releases its cache before it fails.

// One run with so much memory on the card, the CUDA context's not counted; nullopt: interrupted.
using RunUnderLimit = std::function<std::optional<records::CaseResult>(std::int64_t bytes)>;

struct LeastMemory {
  // It ran in this, and not in 2 MiB less (below 2 MiB there is nothing to run in).
  std::optional<std::int64_t> bytes;
  // Why it is unknown, or what contradicts it: that it also runs in less, or not in a little more.
  std::string note;
  std::int64_t runs = 0;  // that it took
};

// What is known of the case before.
struct KnownPeaks {
  std::int64_t allocated_bytes = 0;        // it hardly runs in less
  std::int64_t reserved_bytes = 0;         // and runs in this, most likely
  std::optional<std::int64_t> card_bytes;  // it ran on a card of so much
};

// `beside`: see largest_that_runs().
LeastMemory find_least_memory(const KnownPeaks& known, const RunUnderLimit& run, int beside = 3);

// What one run says of memory.
Answer answer_of(const records::CaseResult& result);

}  // namespace peakbench::search
