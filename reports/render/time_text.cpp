#include "reports/render/time_text.h"

#include <fmt/format.h>

#include "reports/analysis/timing.h"
#include "reports/render/format.h"

namespace peakbench::reports {
namespace {

constexpr double kMostShown = 9.99;  // beyond ten times as much, the figure does not matter

}  // namespace

std::string interval_text(const statistics::SpeedDifference& difference) {
  if (!has_interval(difference)) return "";
  const double high = difference.high - 1;
  return fmt::format("{} to {}", signed_percent(difference.low - 1),
                     high > kMostShown ? "over +999" : signed_percent(high));
}

std::string half_width_text(const statistics::SpeedDifference& difference) {
  if (!has_interval(difference)) return "";
  const double half = (difference.high - difference.low) / 2;
  return half > kMostShown ? ">999" : percent(half);
}

std::string no_interval_text(const statistics::SpeedDifference& difference) {
  if (has_interval(difference)) return "";
  if (difference.samples == 0) return "not measured in rounds: no interval";
  return difference.samples == 1 ? "one round: no interval" : "two rounds: no interval";
}

}  // namespace peakbench::reports
