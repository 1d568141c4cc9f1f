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
  // Of the allocation that brought it here: the last one in this phase, up to `event` and alive
  // there, of at least a thousandth of the bytes. Empty where there is none.
  bool in_update = false;
  std::string module, op;
  std::int64_t allocated_bytes = 0;
  Parts parts{};
};

// What is kept of a trace to explain it, and to draw it beside another.
struct Anatomy {
  Moment peak;
  std::array<std::optional<Moment>, kPhaseCount> phases;  // steps only; build has none
};

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space = kOwnSpace);

// `The peak is 5.739 GiB, in the optimizer step (aten::_foreach_sqrt).`
std::string tell_peak(const Anatomy& anatomy);

// Plain text in UTF-8, no markup, e.g. `In the optimizer step, where baseline peaks,
// foreach-off uses 1.103 GiB less temporary memory. The peak is now 4.636 GiB (−19.2 %),
// still in the optimizer step (aten::div).` The names are what the two are called.
std::string explain(const Anatomy& reference, const Anatomy& strategy,
                    const std::string& reference_name, const std::string& strategy_name);

}  // namespace peakbench::trace
