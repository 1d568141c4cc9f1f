#include "reports/analysis/timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

namespace peakbench::statistics {
namespace {

constexpr std::int64_t kMost = 1000;  // more samples nobody takes

// The probability that |T| < t, for t >= 0.
double inside(double t, int freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine = std::cos(angle), squared = cosine * cosine;
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (int i = odd ? 3 : 2; i <= freedom - 2; i += 2) {
    term *= squared * (i - 1) / i;
    sum += term;
  }
  if (!odd) return std::sin(angle) * sum;
  return 2 / std::numbers::pi * (angle + std::sin(angle) * sum);
}

struct Spread {
  double mean = 0, variance = 0;
};

Spread spread(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  Spread found;
  found.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  for (const auto value : values)
    found.variance += (value - found.mean) * (value - found.mean) / (count - 1);
  return found;
}

// What is known of the mean of logarithms: its estimate and how far off it may be.
struct Estimate {
  double mean = 0, error = 0;  // standard error
  int freedom = 1;
};

// How many samples make the interval narrow enough to leave 0, or to fit into the margin, if the
// mean stays where it is: whichever is easier. `spread_of_one`: standard deviation of one sample.
std::optional<std::int64_t> samples_needed(double mean, double spread_of_one, double margin,
                                           double false_alarms) {
  const double target = std::max(std::abs(mean), margin - std::abs(mean));
  const auto narrow = [&](std::int64_t samples) {
    const auto t = student_t_quantile(1 - false_alarms, static_cast<int>(samples - 1));
    return t * spread_of_one / std::sqrt(static_cast<double>(samples)) < target;
  };
  std::int64_t low = kLeastSamples - 1, high = kLeastSamples;
  for (; !narrow(high); high = std::min(2 * high, kMost)) {
    if (high == kMost) return std::nullopt;
    low = high;
  }
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (narrow(middle) ? high : low) = middle;
  }
  return high;
}

SpeedDifference judge(const Estimate& estimate, std::size_t samples, double margin,
                      double false_alarms) {
  SpeedDifference found;
  found.samples = samples;
  const double half = student_t_quantile(1 - false_alarms, estimate.freedom) * estimate.error,
               low = estimate.mean - half, high = estimate.mean + half, edge = std::log1p(margin);
  found.ratio = std::exp(estimate.mean);
  found.low = std::exp(low);
  found.high = std::exp(high);
  if (-edge <= low && high <= edge) {
    found.direction = Direction::kSame;
  } else if (low > 0) {
    found.direction = Direction::kWorse;
  } else if (high < 0) {
    found.direction = Direction::kBetter;
  } else {
    found.reason = "the times vary too much for so few processes";
    const auto of_one = estimate.error * std::sqrt(static_cast<double>(samples));
    const auto needed = samples_needed(estimate.mean, of_one, edge, false_alarms);
    if (needed)
      found.more = std::max<std::int64_t>(1, *needed - static_cast<std::int64_t>(samples));
  }
  return found;
}

SpeedDifference too_few(std::size_t samples, double ratio, std::size_t least) {
  SpeedDifference found;
  found.samples = samples;
  found.ratio = ratio;
  found.reason = "too few processes: how much one differs from the next is not known";
  found.more = static_cast<std::int64_t>(least - samples);
  return found;
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0 : spread(values).mean;
}

}  // namespace

const char* to_string(Direction direction) {
  static constexpr std::array kNames{"same", "better", "worse", "unknown"};
  return kNames.at(static_cast<std::size_t>(direction));
}

double student_t_cdf(double t, int freedom) {
  const double half = inside(std::abs(t), freedom) / 2;
  return t < 0 ? 0.5 - half : 0.5 + half;
}

double student_t_quantile(double probability, int freedom) {
  if (probability < 0.5) return -student_t_quantile(1 - probability, freedom);
  double low = 0, high = 1;
  while (student_t_cdf(high, freedom) < probability) high *= 2;
  while (high - low > 1e-12 * high) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    (student_t_cdf(middle, freedom) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

SpeedDifference judge_pairs(const std::vector<double>& log_ratios, double margin,
                            double false_alarms, std::size_t least) {
  const auto count = log_ratios.size();
  if (count < least) return too_few(count, std::exp(mean_of(log_ratios)), least);
  const auto of_one = spread(log_ratios);
  return judge({of_one.mean, std::sqrt(of_one.variance / static_cast<double>(count)),
                static_cast<int>(count) - 1},
               count, margin, false_alarms);
}

SpeedDifference judge_groups(const std::vector<double>& base, const std::vector<double>& now,
                             double margin, double false_alarms) {
  const auto fewer = std::min(base.size(), now.size());
  if (fewer < kLeastSamples)
    return too_few(fewer, std::exp(mean_of(now) - mean_of(base)), kLeastSamples);
  const auto of_base = spread(base), of_now = spread(now);
  const auto n = static_cast<double>(base.size()), m = static_cast<double>(now.size());
  const double a = of_base.variance / n, b = of_now.variance / m, both = a + b;
  const double freedom = both == 0 ? n + m - 2 : both * both / (a * a / (n - 1) + b * b / (m - 1));
  return judge({of_now.mean - of_base.mean, std::sqrt(both),
                std::max(1, static_cast<int>(std::min(freedom, 1e6)))},
               fewer, margin, false_alarms);
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace peakbench::statistics

namespace peakbench::reports {
namespace {

using statistics::Direction;
using statistics::median_of;
using statistics::SpeedDifference;

// With two, Student's factor at 1% is 31.8: an interval that says nothing.
constexpr std::size_t kLeastRounds = 3;
constexpr double kBusyPart = 0.1;

const records::TimingRound* find(const records::Throughput& throughput, std::int64_t round) {
  const auto found = std::ranges::find(throughput.rounds, round, &records::TimingRound::round);
  return found == throughput.rounds.end() ? nullptr : &*found;
}

std::vector<double> log_ratios(const records::Throughput& ours,
                               const records::Throughput& reference) {
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

SpeedDifference time_against(const records::Throughput& ours, const records::Throughput& reference,
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

void Disturbance::add(const records::Throughput& throughput, double cores) {
  for (const auto& round : throughput.rounds) {
    if (!round.other_busy_cores) continue;
    ++rounds;
    if (is_busy(*round.other_busy_cores, cores)) ++busy;
    most = std::max(most, *round.other_busy_cores);
  }
}

}  // namespace peakbench::reports
