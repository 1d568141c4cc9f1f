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

LinesOfPeak lines_of_file(const Source& source) {
  LinesOfPeak found{{}, source.lines};
  for (const auto& share : found.lines)
    if (!share.line.file.empty()) found.files.push_back(share.line.file);
  return found;
}

// A trace that was left from another run must explain nothing; growth_note says why.
std::optional<LinesOfPeak> lines_of_peak(const Source& source, const result::CaseResult& result) {
  if (!source.lines.empty()) return lines_of_file(source);
  if (source.folder.empty()) return std::nullopt;
  try {
    const auto path = result::trace_file(result, source.folder);
    if (!files::is_there(path)) return std::nullopt;
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

// A line of one side, by the name that it has there.
struct NamedLine {
  std::string name;
  std::int32_t number = 0;
  std::int64_t bytes = 0;
};
// The lines of each function, from the top of its file on.
using Functions = std::map<std::pair<std::string, std::string>, std::vector<NamedLine>>;

Functions functions_of(const LinesOfPeak& side, const LineNames& names) {
  Functions functions;
  for (const auto& share : side.lines)
    functions[{names.file(share.line.file), share.line.function}].push_back(
        {names.line(share.line), share.line.line, share.bytes});
  for (auto& [where, lines] : functions) std::ranges::stable_sort(lines, {}, &NamedLine::number);
  return functions;
}

// Which lines of a function are the same in both: in their order, so that the bytes that differ are
// fewest, and of such pairings the one that moves fewest lines. -1: none.
std::vector<int> pairs_of(const std::vector<NamedLine>& base, const std::vector<NamedLine>& now) {
  constexpr std::size_t kMostPairs = 1 << 22;  // a function of so many lines is nobody's
  if (base.size() * now.size() > kMostPairs) return std::vector<int>(now.size(), -1);
  using Cost = std::pair<std::int64_t, std::int64_t>;  // bytes that differ, lines that moved
  const auto rows = base.size() + 1, columns = now.size() + 1;
  std::vector<Cost> least(rows * columns);
  const auto at = [&](std::size_t i, std::size_t k) -> Cost& { return least[i * columns + k]; };
  const auto alone = [](const Cost& before, const NamedLine& line) {
    return Cost{before.first + line.bytes, before.second};
  };
  const auto paired = [&](std::size_t i, std::size_t k) {
    const auto &one = base[i - 1], &other = now[k - 1];
    const auto& before = at(i - 1, k - 1);
    // Moved and of other bytes may be another line: dearer than one that is gone and one that is
    // new.
    if (one.bytes != other.bytes && one.number != other.number)
      return Cost{before.first + one.bytes + other.bytes + 1, before.second};
    return Cost{before.first + std::llabs(one.bytes - other.bytes),
                before.second + (one.number != other.number ? 1 : 0)};
  };
  for (std::size_t i = 1; i < rows; ++i) at(i, 0) = alone(at(i - 1, 0), base[i - 1]);
  for (std::size_t k = 1; k < columns; ++k) at(0, k) = alone(at(0, k - 1), now[k - 1]);
  for (std::size_t i = 1; i < rows; ++i)
    for (std::size_t k = 1; k < columns; ++k)
      at(i, k) = std::min(
          {paired(i, k), alone(at(i - 1, k), base[i - 1]), alone(at(i, k - 1), now[k - 1])});
  std::vector<int> pairs(now.size(), -1);
  for (std::size_t i = base.size(), k = now.size(); i > 0 && k > 0;) {
    if (at(i, k) == paired(i, k))
      pairs[--k] = static_cast<int>(--i);
    else if (at(i, k) == alone(at(i - 1, k), base[i - 1]))
      --i;
    else
      --k;
  }
  return pairs;
}

void add_changes(const std::string& function, const std::vector<NamedLine>& base,
                 const std::vector<NamedLine>& now, std::vector<LineChange>& found) {
  const auto pairs = pairs_of(base, now);
  for (std::size_t k = 0; k < now.size(); ++k) {
    const auto before = pairs[k] < 0 ? 0 : base[static_cast<std::size_t>(pairs[k])].bytes;
    if (before != now[k].bytes) found.push_back({now[k].name, function, before, now[k].bytes});
  }
  for (std::size_t i = 0; i < base.size(); ++i)
    if (std::ranges::count(pairs, static_cast<int>(i)) == 0)
      found.push_back({base[i].name, function, base[i].bytes, 0});
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
  auto before_edit = functions_of(*of_base, LineNames(together ? of_both : of_base->files));
  const auto after_edit = functions_of(*of_now, LineNames(together ? of_both : of_now->files));
  std::vector<LineChange> found;
  for (const auto& [where, lines] : after_edit) {
    add_changes(where.second, before_edit[where], lines, found);
    before_edit.erase(where);
  }
  for (const auto& [where, lines] : before_edit) add_changes(where.second, lines, {}, found);
  std::stable_sort(found.begin(), found.end(), [](const LineChange& a, const LineChange& b) {
    return std::llabs(a.now - a.base) > std::llabs(b.now - b.base);
  });
  return found;
}

}  // namespace peakbench::compare
