#include "reports/analysis/timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace peakbench::reports {
namespace {

using statistics::Direction;
using statistics::median_of;
using statistics::SpeedDifference;

// With two, Student's factor at 1% is 31.8: an interval that says nothing.
constexpr std::size_t kLeastRounds = 3;
constexpr double kBusyPart = 0.1;

const result::TimingRound* find(const result::Throughput& throughput, std::int64_t round) {
  const auto found = std::ranges::find(throughput.rounds, round, &result::TimingRound::round);
  return found == throughput.rounds.end() ? nullptr : &*found;
}

std::vector<double> log_ratios(const result::Throughput& ours,
                               const result::Throughput& reference) {
  std::vector<double> logs;
  for (const auto& round : ours.rounds) {
    const auto* other = find(reference, round.round);
    if (!other) continue;
    const auto a = median_of(round.step_times_ns), b = median_of(other->step_times_ns);
    if (a > 0 && b > 0)
      logs.push_back(std::log(static_cast<double>(a)) - std::log(static_cast<double>(b)));
  }
  return logs;
}

}  // namespace

SpeedDifference time_against(const result::Throughput& ours, const result::Throughput& reference,
                             double margin, double false_alarms) {
  const auto logs = log_ratios(ours, reference);
  if (!logs.empty()) return statistics::judge_pairs(logs, margin, false_alarms, kLeastRounds);
  SpeedDifference found;
  if (ours.step_ns.median > 0 && reference.step_ns.median > 0)
    found.ratio =
        static_cast<double>(ours.step_ns.median) / static_cast<double>(reference.step_ns.median);
  return found;
}

bool has_interval(const SpeedDifference& difference) { return difference.samples >= kLeastRounds; }

bool is_told(const SpeedDifference& difference) {
  return difference.direction == Direction::kWorse || difference.direction == Direction::kBetter;
}

bool is_busy(double other_cores, double cores) { return other_cores > kBusyPart * cores; }

void Disturbance::add(const result::Throughput& throughput, double cores) {
  for (const auto& round : throughput.rounds) {
    if (!round.other_busy_cores) continue;
    ++rounds;
    if (is_busy(*round.other_busy_cores, cores)) ++busy;
    most = std::max(most, *round.other_busy_cores);
  }
}

}  // namespace peakbench::reports
