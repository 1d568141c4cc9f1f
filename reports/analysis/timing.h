// What step times say of a case against another, and how surely. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "reports/analysis/statistics.h"
#include "result/case.h"

namespace peakbench::reports {

// Each end of an interval is passed by chance this often: as the gate's default.
inline constexpr double kTimeFalseAlarms = 0.01;

// The step time of `ours` over that of `reference`, from the rounds that both were timed in: a
// round counts with the logarithm of the ratio of its median steps. The direction is kWorse
// (slower) or kBetter where the interval leaves out no change, nor a change within `margin`; kSame
// or kUnknown where noise could have made the difference. With fewer than three common rounds there
// is a ratio and no interval; `samples` are the common rounds, 0 in files of schema 1.0.
statistics::SpeedDifference time_against(const result::Throughput& ours,
                                         const result::Throughput& reference, double margin = 0,
                                         double false_alarms = kTimeFalseAlarms);

bool has_interval(const statistics::SpeedDifference& difference);
bool is_told(const statistics::SpeedDifference& difference);  // faster or slower, beyond noise

// How much other processes disturbed timing: of the rounds whose load is known, those in which they
// kept more than a tenth of `cores` busy, and the most that they did.
struct Disturbance {
  std::size_t rounds = 0, busy = 0;
  double most = 0;  // cores
  void add(const result::Throughput& throughput, double cores);
};
bool is_busy(double other_cores, double cores);

}  // namespace peakbench::reports
