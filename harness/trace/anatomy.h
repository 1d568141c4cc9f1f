// What is kept of a trace to explain it, and to draw it beside another: its highest moments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/breakdown.h"
#include "trace/lifetimes.h"

namespace peakbench::trace {

// The highest moment of a phase over all steps, or of a trace, and what was alive there.
struct Moment {
  std::uint64_t event = 0;
  Phase phase = Phase::kBuild;  // it counts for
  std::int32_t step = kNone;
  // Of the allocation that brought it here: the last one in this phase, up to `event` and alive
  // there, of at least a thousandth of the bytes. Empty where there is none.
  bool in_update = false;
  std::string module, op;
  std::int64_t allocated_bytes = 0;
  Breakdown breakdown{};
};

// What is kept of a trace to explain it, and to draw it beside another.
struct Anatomy {
  Moment peak;
  std::array<std::optional<Moment>, kPhaseCount> phases;  // steps only; build has none
};

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = kOwnSpace);

}  // namespace peakbench::trace
