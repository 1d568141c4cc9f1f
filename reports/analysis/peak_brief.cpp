#include "reports/analysis/peak_brief.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/analysis/called_lines.h"
#include "reports/analysis/findings.h"
#include "reports/analysis/line_names.h"
#include "reports/analysis/strategies_against.h"
#include "reports/analysis/why.h"
#include "trace/lines.h"
#include "trace/maxima.h"

namespace peakbench::analysis {
namespace {

constexpr std::size_t kLinesNamed = 3;
constexpr double kLeastNamed = 0.01;  // of a line that is named

std::size_t largest_of(const std::array<std::int64_t, trace::kCategoryCount>& bytes) {
  return static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin());
}

std::string shares_text(const std::vector<trace::LineShare>& lines, const LineNames& names) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kLinesNamed; ++i) {
    if (lines[i].share < kLeastNamed) break;
    std::string category =
        trace::to_string(static_cast<trace::Category>(largest_of(lines[i].by_category)));
    std::ranges::replace(category, '_', ' ');
    text += fmt::format("{}{} {:.0f}% ({})", text.empty() ? "" : ", ", names.line(lines[i].line),
                        100 * lines[i].share, category);
  }
  return text;
}

std::string fills_text(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                       std::uint64_t event) {
  const LineNames names(trace);
  const auto lines = trace::lines_at(trace, lifetimes, event);
  if (trace.frames.empty() || lines.empty()) return "";
  const auto called = called_lines(trace, lifetimes, event, lines);
  return shares_text(lines, names) +
         (called.empty() ? "" : "; by the line of a library: " + shares_text(called, names));
}

// What looks like a mistake; that memory ran out is none.
std::string finding_text(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) {
  for (const auto& sentence : sentences_of(why(trace, lifetimes)))
    if (!sentence.kind.empty() && sentence.kind != to_string(FindingKind::kOutOfMemory))
      return sentence.text;
  return "";
}

}  // namespace

PeakBrief peak_brief(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) {
  if (trace.events.empty()) return {};
  PeakBrief brief;
  auto event = trace.events.size() - 1;
  const auto& last = trace.events.back();
  if (last.kind == trace::EventKind::kOutOfMemory) {
    const auto line = trace::own_line(trace, last.stack);
    brief.when = fmt::format("memory ran out {}: {} asked for{}", when(last.phase, last.step),
                             in_words(last.requested_bytes),
                             line.file.empty() ? "" : " at " + LineNames(trace).in_words(line));
  } else {
    const auto peak = trace::find_peak(trace, lifetimes);
    event = peak.event;
    brief.when = fmt::format("tensors fill {} of it (allocated), {}",
                             in_words(peak.allocated_bytes), when(peak.phase, peak.step));
  }
  brief.fills = fills_text(trace, lifetimes, event);
  brief.advice = finding_text(trace, lifetimes);
  if (brief.advice.empty()) brief.advice = remedy_for_program(trace, lifetimes, event);
  return brief;
}

}  // namespace peakbench::analysis
