#include "reports/compare/lines.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "files/file.h"
#include "reports/analysis/line_names.h"
#include "result/run_paths.h"
#include "trace/maxima.h"
#include "trace/trace_file.h"

namespace peakbench::compare {
namespace {

using analysis::LineNames;

struct LinesOfPeak {
  std::vector<std::string> files;
  std::vector<trace::LineShare> lines;
};

// A trace that was left from another run must explain nothing; growth_note says why.
std::optional<LinesOfPeak> lines_of_peak(const Source& source, const result::CaseResult& result) {
  try {
    const auto path = result::trace_file(result, source.folder);
    if (source.folder.empty() || !files::is_there(path)) return std::nullopt;
    const auto trace = trace::read_trace(path);
    if (trace.frames.empty() || trace.events.empty()) return std::nullopt;
    const auto lifetimes = trace::lifetimes(trace);
    const auto peak = trace::find_peak(trace, lifetimes);
    if (peak.allocated_bytes != result.memory->peak_allocated_bytes) return std::nullopt;
    return LinesOfPeak{trace.files, trace::lines_at(trace, lifetimes, peak.event)};
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

bool share_a_file(const LinesOfPeak& base, const LinesOfPeak& now) {
  return std::any_of(base.files.begin(), base.files.end(), [&](const std::string& file) {
    return !trace::is_library_file(file) &&
           std::find(now.files.begin(), now.files.end(), file) != now.files.end();
  });
}

}  // namespace

std::vector<LineChange> line_changes(const Source& base, const result::CaseResult& before,
                                     const Source& now, const result::CaseResult& after) {
  const auto of_base = lines_of_peak(base, before);
  const auto of_now = of_base ? lines_of_peak(now, after) : std::nullopt;
  if (!of_now) return {};
  auto of_both = of_base->files;
  of_both.insert(of_both.end(), of_now->files.begin(), of_now->files.end());
  const bool together = share_a_file(*of_base, *of_now);
  std::map<std::pair<std::string, std::string>, LineChange> changes;
  const auto add = [&](const LinesOfPeak& side, std::int64_t LineChange::*bytes) {
    const LineNames names(together ? of_both : side.files);
    for (const auto& share : side.lines) {
      const auto line = names.line(share.line);
      auto& change = changes[{line, share.line.function}];
      change.line = line;
      change.function = share.line.function;
      change.*bytes += share.bytes;
    }
  };
  add(*of_base, &LineChange::base);
  add(*of_now, &LineChange::now);
  std::vector<LineChange> found;
  for (auto& [key, change] : changes)
    if (change.now != change.base) found.push_back(std::move(change));
  std::stable_sort(found.begin(), found.end(), [](const LineChange& a, const LineChange& b) {
    return std::llabs(a.now - a.base) > std::llabs(b.now - b.base);
  });
  return found;
}

}  // namespace peakbench::compare
