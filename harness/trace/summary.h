#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"

namespace peakbench::trace {

// The part of a trace that is kept to explain it, and to draw it next to another: its maxima.

// The highest moment of a phase over all steps, or of a trace, and what was alive there.
struct Moment {
  std::uint64_t event = 0;
  Phase phase = Phase::kBuild;  // it counts for
  std::int32_t step = kNone;
  // The allocation that brought it here: the last one in this phase, up to `event` and still alive,
  // of at least a thousandth of the bytes. Empty if there is none.
  bool in_update = false;
  std::string module, op;
  std::int64_t allocated_bytes = 0;
  Breakdown breakdown{};
};

// The part of a trace that is kept to explain it, and to draw it next to another.
struct Anatomy {
  Moment peak;
  std::array<std::optional<Moment>, kPhaseCount> phases;  // steps only; build has none
};

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = kOwnSpace);

// Where a saving came from: from one peak to another by category and phase, exactly.

struct WaterfallStep {
  Category category = Category::kParameter;
  Phase phase = Phase::kBuild;
  std::int64_t difference_bytes = 0;  // never 0
  std::int64_t level_bytes = 0;       // after this step
};

// from_bytes plus all differences is to_bytes. Savings first, then what was added; each the largest
// first.
struct Waterfall {
  std::int64_t from_bytes = 0, to_bytes = 0;
  std::vector<WaterfallStep> steps;
};

Waterfall waterfall(const Breakdown& from, const Breakdown& to);

// The Memory record of a complete trace.

// All but worker_peak_rss_bytes and context_bytes. Peaks are maxima over steps >= 0
// (`phases.build`: before them), the level at the start of a phase included (trace/maxima.h).
records::Memory summarise(const Trace& trace);
records::Memory summarise(const Trace& trace, const std::vector<Lifetime>& lifetimes);

}  // namespace peakbench::trace
