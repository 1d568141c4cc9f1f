#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"

namespace peakbench::statistics {

// Whether one thing (a build, a strategy) is slower than another, by noisy times. Pure.
//
// Everything uses logarithms of ratios: 0.05 is 5% slower, and a ratio's inverse is its negative.
// docs/how-to/compare.md describes the method and its measured error rates.

enum class Direction { kSame, kBetter, kWorse, kUnknown };
const char* to_string(Direction direction);  // "same", "better", "worse", "unknown"

// Student's t: exact for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
// `freedom` from 1 on, `probability` in (0, 1).
double student_t_cdf(double t, int freedom);
double student_t_quantile(double probability, int freedom);

struct SpeedDifference {
  Direction direction = Direction::kUnknown;
  std::size_t samples = 0;  // pairs, rounds, or processes of the side that has fewer
  // NEW's step time over BASE's, with its interval. The true ratio lies beyond each end with the
  // probability `false_alarms`. 0 if there are too few samples for an interval.
  double ratio = 0, low = 0, high = 0;
  std::optional<std::int64_t> more;  // kUnknown: samples that should settle it; absent: over 1000
  std::string reason;                // kUnknown: why
};

// Fewer are not judged by themselves: five is where Student's factor at 1% has become usable
// (3.75).
inline constexpr std::size_t kLeastSamples = 5;

// Paired t: `log_ratios` is ln(new / base), one for each pair of processes that ran next to each
// other in random order. `same` if the interval is within the margin on both sides of 1; else
// `worse` or `better` if it is on one side of 1. Needs `least` samples, at least 2.
SpeedDifference judge_pairs(const std::vector<double>& log_ratios, double margin,
                            double false_alarms, std::size_t least = kLeastSamples);

// Welch's t (degrees of freedom rounded down) for processes that were not paired: logarithms of
// their step times.
SpeedDifference judge_groups(const std::vector<double>& base, const std::vector<double>& now,
                             double margin, double false_alarms);

// The median of whole numbers, the lower of the middle two: a step that was measured.
std::int64_t median_of(std::vector<std::int64_t> values);

}  // namespace peakbench::statistics

namespace peakbench::reports {

// What step times say of a case against another, and how surely. Pure.

// Each end of an interval is passed by chance this often: as the gate's default.
inline constexpr double kTimeFalseAlarms = 0.01;

// The step time of `ours` over that of `reference`, from the rounds that both were timed in: a
// round counts with the logarithm of the ratio of its median steps. The direction is kWorse
// (slower) or kBetter where the interval leaves out no change, nor a change within `margin`; kSame
// or kUnknown where noise could have made the difference. With fewer than three common rounds there
// is a ratio and no interval; `samples` are the common rounds, 0 in files of schema 1.0.
statistics::SpeedDifference time_against(const records::Throughput& ours,
                                         const records::Throughput& reference, double margin = 0,
                                         double false_alarms = kTimeFalseAlarms);

bool has_interval(const statistics::SpeedDifference& difference);
bool is_told(const statistics::SpeedDifference& difference);  // faster or slower, beyond noise

// How much other processes disturbed timing. Counts rounds whose load is known: all, those in which
// other processes kept more than a tenth of `cores` busy, and the largest load.
struct Disturbance {
  std::size_t rounds = 0, busy = 0;
  double most = 0;  // cores
  void add(const records::Throughput& throughput, double cores);
};
bool is_busy(double other_cores, double cores);

}  // namespace peakbench::reports
