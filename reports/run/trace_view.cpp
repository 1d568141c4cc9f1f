#include "reports/run/trace_view.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>

#include "base/errors.h"
#include "base/file.h"
#include "records/run_files.h"
#include "reports/analysis/causes.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/explain.h"
#include "reports/run/trace_data.h"
#include "trace/alive.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::reports {
namespace {

using trace::Category;

constexpr std::size_t kPictureSamples = 360;
constexpr double kBox = 1000;  // pictures are drawn in a box of this size
// A page stays below a few megabytes a case, some tens in all: later traces come coarser, then not
// at all.
constexpr std::size_t kWholeTraces = 8'000'000, kAnyTraces = 24'000'000;
constexpr std::size_t kTreeRows = 60, kChildren = 8, kLargest = 12;
constexpr double kLeastShare = 0.01;

std::string labelled(Category category) { return category_label(to_string(category)); }

// The categories of the timeline, in the order of the bars.
std::vector<std::size_t> stacked(const trace::Timeline& timeline) {
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < trace::kCategoryCount; ++i)
    if (std::ranges::any_of(timeline.samples,
                            [i](const auto& sample) { return sample.by_category[i] != 0; }))
      present.push_back(i);
  return in_stacking_order(std::move(present));
}

class Box {
 public:
  Box(std::uint64_t events, std::int64_t highest)
      : events_(static_cast<double>(std::max<std::uint64_t>(events, 1))),
        highest_(static_cast<double>(std::max<std::int64_t>(highest, 1))) {}
  std::string x(std::uint64_t event) const {
    return tenths(static_cast<double>(event) / events_ * kBox);
  }
  std::string y(std::int64_t bytes) const {
    return tenths(kBox - static_cast<double>(bytes) / highest_ * kBox);
  }

 private:
  double events_, highest_;
};

// All below the sum of the first `count` categories; what lies under it is drawn over it.
std::string area_path(const trace::Timeline& timeline, const std::vector<std::size_t>& order,
                      std::size_t count, const Box& box) {
  std::string path = "M0," + box.y(0), last;
  for (const trace::TimelineSample& sample : timeline.samples) {
    std::int64_t height = 0;
    for (std::size_t i = 0; i < count; ++i) height += sample.by_category[order[i]];
    const std::string y = box.y(height);
    path += "H" + box.x(sample.first);
    if (y != last) path += "V" + y;
    last = y;
  }
  return path + "H" + box.x(timeline.last) + "V" + box.y(0) + "Z";
}

std::vector<AreaView> areas_view(const CaseAnatomy& anatomy, const Box& box) {
  const std::vector<std::size_t> order = stacked(anatomy.timeline);
  std::vector<AreaView> areas;
  for (std::size_t count = order.size(); count > 0; --count) {
    const auto category = static_cast<Category>(order[count - 1]);
    areas.push_back({.label = labelled(category),
                     .colour = category_colour(to_string(category)),
                     .path = area_path(anatomy.timeline, order, count, box)});
  }
  return areas;
}

std::vector<BandView> bands_view(const CaseAnatomy& anatomy, const Box& box) {
  std::vector<BandView> bands;
  for (const trace::PhaseSpan& span : anatomy.spans) {
    bands.push_back({.phase = to_string(span.phase),
                     .label = phase_label(to_string(span.phase)),
                     .step = span.step == trace::kNone ? "" : std::to_string(span.step + 1),
                     .starts_step = span.phase == trace::Phase::kForward,
                     .x = box.x(span.first),
                     .width = box.x(span.last - span.first)});
  }
  return bands;
}

void flatten(const trace::AliveNode& node, const trace::Alive& alive, int depth,
             std::vector<AliveRowView>& rows) {
  std::size_t shown = 0, hidden = 0;
  std::int64_t hidden_bytes = 0;
  for (const trace::AliveNode& child : node.children) {
    if (child.share < kLeastShare || rows.size() >= kTreeRows || shown == kChildren) {
      ++hidden;
      hidden_bytes += child.bytes;
      continue;
    }
    const bool leaf = child.kind == trace::AliveNode::Kind::kAllocation;
    const char* kind = leaf                                            ? "allocation"
                       : child.kind == trace::AliveNode::Kind::kModule ? "module"
                                                                       : "operator";
    const auto category = [&] { return alive.allocations[child.allocation].category; };
    rows.push_back({.depth = std::to_string(depth),
                    .kind = kind,
                    .label = printable(child.label),
                    .colour = leaf ? category_colour(to_string(category())) : "",
                    .gib = gib(child.bytes),
                    .bytes = grouped(child.bytes),
                    .percent = percent(child.share),
                    .count = grouped(child.allocations),
                    .several = child.allocations > 1});
    ++shown;
    flatten(child, alive, depth + 1, rows);
  }
  if (hidden > 0 && hidden < node.children.size()) {
    rows.push_back({.depth = std::to_string(depth),
                    .kind = "rest",
                    .label = grouped(hidden) + " more",
                    .colour = "",
                    .gib = gib(hidden_bytes),
                    .bytes = grouped(hidden_bytes),
                    .percent = percent(ratio_of(hidden_bytes, alive.allocated_bytes)),
                    .count = ""});
  }
}

// A category's sum, then what it is made of; the small of it as one row. The rows without sums add
// up to the peak.
std::vector<AliveCauseView> folded_view(const trace::Alive& alive) {
  const auto least = static_cast<double>(alive.allocated_bytes) * kLeastShare;
  std::vector<AliveCauseView> rows;
  const auto add = [&](const std::string& category, std::int64_t bytes, std::string text) {
    rows.push_back({.text = std::move(text),
                    .category = printable(category_label(category)),
                    .colour = category_colour(category),
                    .gib = gib(bytes),
                    .bytes = grouped(bytes),
                    .percent = percent(ratio_of(bytes, alive.allocated_bytes))});
  };
  for (const auto& category : analysis::causes_of(alive)) {
    add(category.category, category.block_difference, "");
    rows.back().is_category = true;
    std::int64_t rest = category.block_difference;
    std::size_t shown = 0;
    for (const auto& cause : category.causes) {
      if (static_cast<double>(cause.block_difference()) < least) break;
      rest -= cause.block_difference();
      ++shown;
      add(category.category, cause.block_difference(), held_text(cause));
    }
    if (const auto others = category.causes.size() - shown; others > 0)
      add(category.category, rest,
          others == 1 ? held_text(category.causes.back()) : std::to_string(others) + " smaller");
  }
  return rows;
}

std::vector<AllocationView> largest_view(const trace::Alive& alive) {
  std::vector<AllocationView> list;
  for (const trace::AliveAllocation& allocation : alive.allocations) {
    if (list.size() == kLargest) break;
    list.push_back({.name = printable(allocation.name),
                    .module = printable(allocation.module),
                    .op = printable(allocation.op),
                    .category = labelled(allocation.category),
                    .colour = category_colour(to_string(allocation.category)),
                    .phase = phase_label(to_string(allocation.phase)),
                    .shape = printable(allocation.shape),
                    .dtype = printable(allocation.dtype),
                    .gib = gib(allocation.block_bytes),
                    .bytes = grouped(allocation.block_bytes),
                    .percent = percent(allocation.share)});
  }
  return list;
}

CaseAnatomy without(const std::string& why, const std::string& cause = "") {
  CaseAnatomy anatomy;
  anatomy.note = why;
  anatomy.cause = cause.empty() ? why : cause;
  return anatomy;
}

CaseAnatomy read_case(const records::CaseResult& result, const std::string& folder, bool with_data,
                      bool whole) {
  try {
    const std::string path = records::trace_file(result, folder);
    if (!files::is_there(path))
      return without("its trace is not there: " + path, "the trace is not in the run folder");
    CaseAnatomy anatomy = analyse(trace::read_trace(path), with_data, whole);
    const std::int64_t peak = anatomy.anatomy.peak.allocated_bytes;
    if (result.memory && peak != result.memory->peak_allocated_bytes) {
      return without("its trace has a peak of " + grouped(peak) + " bytes, run.json one of " +
                         grouped(result.memory->peak_allocated_bytes) +
                         ": they are not of the same run, so only run.json's figures are shown",
                     "the trace has another peak than run.json: only run.json's figures are shown");
    }
    return anatomy;
  } catch (const std::runtime_error& error) {
    return without(error.what());
  }
}

// Of those that `is_shown` wants.
template <typename IsShown>
Anatomies read_those(const std::vector<records::Run>& runs, const std::vector<std::string>& folders,
                     bool with_data, IsShown is_shown) {
  Anatomies anatomies;
  std::size_t used = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (folders[i].empty()) continue;
    for (const records::CaseResult& result : runs[i].cases) {
      if (!result.added_for.empty() || !records::has_trace(result) || !is_shown(result)) continue;
      CaseAnatomy anatomy =
          read_case(result, folders[i], with_data && used < kAnyTraces, used < kWholeTraces);
      used += anatomy.data.size();
      anatomies.emplace(&result, std::move(anatomy));
    }
  }
  return anatomies;
}

}  // namespace

CaseAnatomy analyse(const trace::Trace& trace, bool with_data, bool whole) {
  const std::vector<trace::Lifetime> lifetimes = trace::lifetimes(trace);
  CaseAnatomy anatomy;
  anatomy.anatomy = trace::anatomy(trace, lifetimes);
  std::future<std::string> data;  // half of the work, and needed last
  if (with_data)
    data = std::async(std::launch::async, pack_trace, std::cref(trace), std::cref(lifetimes),
                      anatomy.anatomy.peak.event, whole);
  anatomy.timeline = trace::timeline(trace, lifetimes, kPictureSamples);
  anatomy.spans = trace::phase_spans(trace);
  anatomy.events = trace.events.size();
  if (!trace.events.empty())
    anatomy.alive = alive_view(trace, lifetimes, anatomy.anatomy.peak.event);
  for (const auto& moment : anatomy.anatomy.phases)
    if (moment)
      anatomy.folds.emplace(moment->phase,
                            analysis::Fold(trace::alive_at(trace, lifetimes, moment->event)));
  anatomy.lines = lines_view(trace, lifetimes, anatomy.anatomy.peak.event);
  if (with_data) anatomy.data = data.get();
  return anatomy;
}

Anatomies read_anatomies(const std::vector<records::Run>& runs,
                         const std::vector<std::string>& folders, bool with_data) {
  return read_those(runs, folders, with_data, [](const records::CaseResult&) { return true; });
}

Anatomies read_anatomies_for_terminal(const std::vector<records::Run>& runs,
                                      const std::vector<std::string>& folders) {
  return read_those(runs, folders, false, [](const records::CaseResult& result) {
    return records::facts_of(result.spec.kind).has_lines || !build_text(result.spec).empty();
  });
}

std::vector<std::string> categories_of(const CaseAnatomy& anatomy) {
  std::vector<std::string> names;
  for (const std::size_t category : stacked(anatomy.timeline))
    names.push_back(to_string(static_cast<Category>(category)));
  return names;
}

std::optional<TimelineView> timeline_view(const CaseAnatomy& anatomy, std::int64_t highest) {
  if (!anatomy.known() || anatomy.timeline.samples.empty()) return std::nullopt;
  const Box box(anatomy.events, highest);
  return TimelineView{.areas = areas_view(anatomy, box),
                      .bands = bands_view(anatomy, box),
                      .events = grouped(anatomy.events),
                      .peak_event = grouped(anatomy.anatomy.peak.event),
                      .peak_x = box.x(anatomy.anatomy.peak.event),
                      .peak_y = box.y(anatomy.anatomy.peak.allocated_bytes)};
}

WaterfallView waterfall_view(const CaseAnatomy& reference, const CaseAnatomy& strategy) {
  const trace::Waterfall waterfall =
      trace::waterfall(reference.anatomy.peak.breakdown, strategy.anatomy.peak.breakdown);
  std::int64_t highest = std::max<std::int64_t>({waterfall.from_bytes, waterfall.to_bytes, 1});
  for (const trace::WaterfallStep& step : waterfall.steps)
    highest = std::max(highest, step.level_bytes);
  const auto of = [highest](std::int64_t bytes) { return fraction(ratio_of(bytes, highest)); };
  std::vector<FallView> steps;
  for (const trace::WaterfallStep& step : waterfall.steps) {
    const std::int64_t low = std::min(step.level_bytes, step.level_bytes - step.difference_bytes);
    steps.push_back({.category = labelled(step.category),
                     .colour = category_colour(to_string(step.category)),
                     .phase = phase_label(to_string(step.phase)),
                     .gib = signed_gib(step.difference_bytes),
                     .bytes = signed_grouped(step.difference_bytes),
                     .less = step.difference_bytes < 0,
                     .start = of(low),
                     .width = of(std::abs(step.difference_bytes))});
  }
  return {.from_gib = gib(waterfall.from_bytes),
          .from_width = of(waterfall.from_bytes),
          .to_gib = gib(waterfall.to_bytes),
          .to_width = of(waterfall.to_bytes),
          .steps = std::move(steps)};
}

AliveView alive_view(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                     std::uint64_t event) {
  const trace::Alive alive = trace::alive_at(trace, lifetimes, event);
  std::vector<AliveRowView> rows;
  flatten(alive.root, alive, 0, rows);
  return {.count = grouped(alive.allocations.size()),
          .folded = folded_view(alive),
          .tree = std::move(rows),
          .largest = largest_view(alive)};
}

}  // namespace peakbench::reports
