#include "reports/analysis/called_lines.h"

#include <algorithm>

namespace peakbench::analysis {
namespace {

constexpr double kMostOfIt = 0.5;

}  // namespace

std::vector<trace::LineShare> called_lines(const trace::Trace& trace,
                                           const std::vector<trace::Lifetime>& lifetimes,
                                           std::uint64_t event,
                                           const std::vector<trace::LineShare>& own) {
  if (own.empty() || own.front().line.file.empty() || own.front().share <= kMostOfIt) return {};
  auto called =
      trace::lines_at(trace, lifetimes, event, trace::kOwnSpace, trace::LineOf::kAnyLibrary);
  if (std::ranges::equal(called, own, {}, &trace::LineShare::line, &trace::LineShare::line))
    return {};
  return called;
}

}  // namespace peakbench::analysis
