// Two runs' memory drawn on one axis. For the room's own use.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/report/trace_view.h"

namespace peakbench::compare {

// The template's field `overlay`: in a box 1000 wide and high, the same phase of the same step at
// the same place, however many events it took. Runs whose phases do not follow in the same order
// are laid over each other from first to last event. False where either has no timeline.
nlohmann::json overlay_view(const reports::CaseAnatomy& base, const reports::CaseAnatomy& now);

}  // namespace peakbench::compare
