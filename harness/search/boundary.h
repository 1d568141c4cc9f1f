// Where running turns into not running: the largest whole number that runs, found by runs alone.
//
// That what runs with one number runs with a smaller one is assumed to find it quickly, and checked
// beside what was found. Nothing is concluded from a formula: a hint only says which number to run
// next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace peakbench::search {

enum class Answer {
  kRuns,
  kDoesNot,  // for want of memory
  kOther,    // anything else: nothing can be said of this number, and the search ends
};

struct Tried {
  Answer answer = Answer::kOther;
  // Where the boundary may be, for all that this run says; taken as a place to look at.
  std::optional<std::int64_t> hint = std::nullopt;
};

using Try = std::function<Tried(std::int64_t)>;

// Where to look. `start` is the first number that is run. The other two are taken for granted until
// the boundary turns out to lie beside them: then they are run, too.
struct Bounds {
  std::int64_t first = 1, last = 1;  // no number outside of these is run
  std::optional<std::int64_t> start = std::nullopt;
  std::optional<std::int64_t> likely_runs = std::nullopt, likely_not = std::nullopt;
};

struct Boundary {
  // Both were run; next to each other. No `runs`: not even `first` does. No `does_not`: `last`
  // runs.
  std::optional<std::int64_t> runs, does_not;
  // Ended by a number whose run said neither; the two above are then as far as the search came, and
  // need not be next to each other.
  std::optional<std::int64_t> stopped_at;
  // Beside the boundary, against what was assumed: smaller ones that do not run, larger ones that
  // do.
  std::vector<std::int64_t> against;
  // All that were run.
  std::map<std::int64_t, Answer> tried;
};

// `beside`: how many numbers on either side of the boundary are run at least, those that it lies
// between included. No number is run twice.
Boundary largest_that_runs(const Bounds& bounds, const Try& run, int beside = 3);

}  // namespace peakbench::search
