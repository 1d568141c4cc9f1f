// Why a strategy lowered the peak, or did not, in one or two sentences made from two traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/anatomy.h"
#include "trace/waterfall.h"

namespace peakbench::trace {

// The highest moment of a phase over all steps, or of a trace, and what was alive there.
struct Moment {
  std::uint64_t event = 0;
  Phase phase = Phase::kBuild;  // place_of() the peak
  std::int32_t step = kNone;
  bool in_update = false;
  std::string module, op;  // of the event, empty where unknown
  std::int64_t allocated_bytes = 0;
  Parts parts{};
};

// What is kept of a trace to explain it, and to draw it beside another.
struct Anatomy {
  Moment peak;
  std::array<std::optional<Moment>, kPhaseCount> phases;  // steps only; build has none
};

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = 0);

// Plain text, no markup, e.g. `The peak of baseline was in optimizer_step
// (aten::_foreach_sqrt): 5.74 GiB. foreach-off removes 1.10 GiB there (temporary). The peak is
// now 4.64 GiB (-19.2%), in optimizer_step.` `reference` and `strategy` are what the two are
// called.
std::string explain(const Anatomy& reference, const Anatomy& strategy,
                    const std::string& reference_name, const std::string& strategy_name);

}  // namespace peakbench::trace
