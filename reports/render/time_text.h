// How an interval of a step time's ratio is written.
#pragma once

#include <string>

#include "reports/analysis/statistics.h"

namespace peakbench::reports {

// "+1.0 to +5.2", per cent; empty without an interval.
std::string interval_text(const statistics::SpeedDifference& difference);
// "2.1": half of its width, in per cent of the reference.
std::string half_width_text(const statistics::SpeedDifference& difference);
// "one round: no interval"; empty where there is an interval.
std::string no_interval_text(const statistics::SpeedDifference& difference);

}  // namespace peakbench::reports
