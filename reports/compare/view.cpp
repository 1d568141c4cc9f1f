#include "reports/compare/view.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <utility>

#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/explain.h"

namespace peakbench::compare {
namespace {

using reports::printable;

// A comment is read, not searched: beyond these a page says how many there are more.
namespace on_page {
constexpr std::size_t kSameShown = 60, kPartsShown = 10, kAppearedShown = 20, kFindingsShown = 10,
                      kLinesShown = 20;
}

SideView side_view(const Side& side) {
  return {.label = printable(side.label),
          .title = printable(side.title),
          .created = printable(reports::date_for_people(side.created)),
          .commit = printable(side.commit)};
}

ChangeView change_view(const Change& change) {
  return {.name = printable(reports::spaced(change.name)),
          .base = printable(change.base),
          .now = printable(change.now),
          .cases = change.cases == 0 ? "" : reports::count_of(change.cases, "case")};
}

FigureView figure_view(const Measure& measure) {
  const auto where = measure.where == "peak" ? "peak" : reports::phase_label(measure.where);
  return {.where = printable(measure.space.empty() ? where : where + " of " + measure.space),
          .figure = measure.figure,
          .name = figure_name(measure),
          .base_gib = reports::gib(measure.base),
          .base_bytes = reports::grouped(measure.base),
          .now_gib = reports::gib(measure.now),
          .now_bytes = reports::grouped(measure.now),
          .difference = short_difference(measure.now - measure.base),
          .difference_bytes = reports::grouped(measure.now - measure.base),
          .allowed = measure.allowed == 0 ? "" : short_difference(measure.allowed),
          .verdict = to_string(measure.direction),
          .worse = measure.direction == Direction::kWorse,
          .better = measure.direction == Direction::kBetter,
          .changed = measure.now != measure.base,
          .not_held = !measure.is_held};
}

PartView part_view(const Growth& part) {
  return {.allocated = short_difference(part.block_bytes),
          .requested = short_difference(part.requested_bytes),
          .category = printable(reports::category_label(part.category)),
          .colour = reports::category_colour(part.category),
          .phase = printable(reports::phase_label(part.allocated_in)),
          .module = named(part.module, "no module"),
          .op = named(part.op, "no operator"),
          .more = part.block_bytes > 0 || part.requested_bytes > 0};
}

AppearedView appeared_view(const Appeared& one) {
  return {.count = std::to_string(std::abs(one.count)),
          .requested = reports::grouped(one.requested_bytes),
          .allocated = reports::grouped(one.block_bytes),
          .gib = reports::gib(one.block_bytes),
          .category = printable(reports::category_label(one.category)),
          .colour = reports::category_colour(one.category),
          .phase = printable(reports::phase_label(one.allocated_in)),
          .module = named(one.module, "no module"),
          .op = named(one.op, "no operator"),
          .name = printable(one.name),
          .shape = printable(one.shape),
          .dtype = printable(one.dtype),
          .gone = one.count < 0};
}

template <typename Item, typename Make>
auto list_of(const std::vector<Item>& items, Make make, std::size_t most = std::string::npos) {
  std::vector<decltype(make(items.front()))> list;
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) list.push_back(make(items[i]));
  return list;
}

std::string beyond(std::size_t count, std::size_t shown) {
  return count > shown ? std::to_string(count - shown) : "";
}

// The largest on both sides: a page that shows only what appeared would hide what it replaced.
std::vector<AppearedView> appeared_list(const std::vector<Appeared>& all) {
  if (all.size() <= on_page::kAppearedShown) return list_of(all, appeared_view);
  auto list = list_of(all, appeared_view, on_page::kAppearedShown - on_page::kAppearedShown / 4);
  for (auto at = all.end() - on_page::kAppearedShown / 4; at != all.end(); ++at)
    if (at->count < 0) list.push_back(appeared_view(*at));
  return list;
}

CauseView cause_view(const analysis::CategoryCauses& category, std::int64_t blocks,
                     std::int64_t requested, std::string text) {
  return {.allocated = short_difference(blocks),
          .requested = short_difference(requested),
          .text = std::move(text),
          .category = printable(reports::category_label(category.category)),
          .colour = reports::category_colour(category.category),
          .is_category = false,
          .is_part = category.causes.size() > 1,
          .more = blocks > 0 || (blocks == 0 && requested > 0)};
}

// A category of one cause is one row; of several its sum and their rows.
void add_causes(const analysis::CategoryCauses& category, std::vector<CauseView>& list) {
  if (category.causes.size() > 1) {
    list.push_back(
        cause_view(category, category.block_difference, category.requested_difference, ""));
    list.back().is_category = true;
    list.back().is_part = false;
  }
  std::int64_t blocks = category.block_difference, requested = category.requested_difference;
  const auto shown = std::min(on_page::kPartsShown, category.causes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& cause = category.causes[i];
    blocks -= cause.block_difference();
    requested -= cause.requested_difference();
    list.push_back(cause_view(category, cause.block_difference(), cause.requested_difference(),
                              reports::cause_text(cause)));
  }
  if (category.causes.size() > shown)
    list.push_back(cause_view(category, blocks, requested,
                              std::to_string(category.causes.size() - shown) + " places more"));
}

// Grown or shrunk.
std::vector<Growth> largest_first(std::vector<Growth> parts) {
  std::ranges::stable_sort(parts, std::ranges::greater(), [](const Growth& part) {
    return std::pair(std::abs(part.block_bytes), std::abs(part.requested_bytes));
  });
  return parts;
}

GrowthView growth_view(const PhaseGrowth& growth, bool at_peak) {
  const auto appeared = appeared_list(growth.appeared);
  GrowthView view;
  view.where = where_text(growth, at_peak);
  view.phase = printable(reports::phase_label(growth.phase));
  view.worse = growth.direction == Direction::kWorse;
  view.allocated = difference_text(growth.block_bytes);
  view.requested = difference_text(growth.requested_bytes);
  for (const auto& category : growth.causes) add_causes(category, view.causes);
  view.parts = list_of(largest_first(growth.parts), part_view, on_page::kPartsShown);
  view.more_parts = beyond(growth.parts.size(), on_page::kPartsShown);
  view.appeared = appeared;
  view.more_appeared = beyond(growth.appeared.size(), appeared.size());
  return view;
}

// The peak first, and its phase not once more.
std::vector<GrowthView> growth_views(const CaseComparison& one) {
  std::vector<GrowthView> views;
  if (one.at_peak) views.push_back(growth_view(*one.at_peak, true));
  for (const auto& growth : one.growth)
    if (!is_told_at_peak(one, growth)) views.push_back(growth_view(growth, false));
  return views;
}

CategoryView category_view(const CategoryChange& change) {
  return {.label = printable(reports::category_label(change.category)),
          .colour = reports::category_colour(change.category),
          .base_gib = reports::gib(change.base),
          .now_gib = reports::gib(change.now),
          .difference = short_difference(change.now - change.base),
          .difference_bytes = reports::grouped(change.now - change.base),
          .worse = change.now > change.base,
          .changed = change.now != change.base};
}

LineChangeView line_view(const LineChange& change) {
  return {.line = printable(change.line),
          .function = printable(change.function),
          .difference = short_difference(change.now - change.base),
          .difference_bytes = reports::grouped(change.now - change.base),
          .base_gib = reports::gib(change.base),
          .now_gib = reports::gib(change.now),
          .more = change.now > change.base};
}

SpeedView speed_view(const Speed& speed) {
  const auto direction = speed.difference.direction;
  return {.verdict = to_string(direction),
          .worse = direction == Direction::kWorse,
          .better = direction == Direction::kBetter,
          .base_ms = reports::milliseconds(speed.base_ns),
          .now_ms = reports::milliseconds(speed.now_ns),
          .ratio = speed.difference.ratio > 0 ? ratio_text(speed.difference.ratio) : "",
          .text = printable(speed_text(speed.difference, "processes"))};
}

// How much a reader wants to see it: 0 is first; kUnchanged is told in a line of its own list.
constexpr int kUnchanged = 9;
int rank(const CaseComparison& one) {
  constexpr std::array kRanks{kUnchanged, 7, 2, 1, 8, 6, 0};  // in the order of CaseState
  if (one.state != CaseState::kCompared) return kRanks.at(static_cast<std::size_t>(one.state));
  const auto reliance = one.verdict ? one.verdict->direction : Direction::kSame;
  if (one.memory == Direction::kWorse || reliance == Direction::kWorse) return 3;
  if (one.speed && reports::is_told(one.speed->difference))
    return one.speed->difference.direction == Direction::kWorse ? 4 : 5;
  return one.memory == Direction::kBetter || reliance == Direction::kBetter ? 5 : kUnchanged;
}

bool is_bad(const CaseComparison& one) {
  constexpr int kLastBad = 4;
  return rank(one) <= kLastBad;
}

CaseView case_view(const CaseComparison& one, std::size_t index) {
  CaseView view;
  view.index = std::to_string(index);
  view.anchor = "case-" + std::to_string(index + 1);
  view.id = printable(one.id);
  view.emulated = one.emulated;
  view.state = printable(state_text(one));
  view.bad = is_bad(one);
  view.good = one.memory == Direction::kBetter && !is_bad(one);
  view.reason = printable(one.reason);
  if (one.verdict && one.verdict->direction != Direction::kSame)
    view.reliance = printable(verdict_text(*one.verdict));
  view.figures = list_of(one.measures, figure_view);
  view.has_changed_figures = std::ranges::any_of(view.figures, &FigureView::changed);
  view.categories = list_of(one.categories, category_view);
  view.growth = growth_views(one);
  view.lines = list_of(one.lines, line_view, on_page::kLinesShown);
  view.more_lines = beyond(one.lines.size(), on_page::kLinesShown);
  view.growth_note = printable(one.growth_note);
  const auto *peak = peak_allocated(one), *telling = telling_figure(one);
  if (peak != nullptr) view.peak = figure_view(*peak);
  if (telling != nullptr && telling != peak) view.telling = figure_view(*telling);
  if (one.speed) view.speed = speed_view(*one.speed);
  return view;
}

GateView gate_view(const GateNote& gate) {
  return {.label = gate.label,
          .passed = gate.passed,
          .findings = list_of(gate.findings, printable, on_page::kFindingsShown),
          .more_findings = beyond(gate.findings.size(), on_page::kFindingsShown)};
}

}  // namespace

ComparisonView make_view(const Comparison& comparison, const PageOptions& options) {
  std::vector<const CaseComparison*> order;
  for (const auto& one : comparison.cases) order.push_back(&one);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  ComparisonView view;
  std::size_t changed = 0, same = 0;
  for (const auto* one : order) {
    view.has_emulated = view.has_emulated || one->emulated;
    view.has_times = view.has_times || one->speed;
    if (rank(*one) == kUnchanged) {
      if (same++ < on_page::kSameShown) view.same.push_back(case_view(*one, changed + same - 1));
    } else if (changed++ < options.most_cases) {
      view.changed.push_back(case_view(*one, changed - 1));
    }
  }
  view.title = printable(comparison.now.title);
  view.base = side_view(comparison.base);
  view.now = side_view(comparison.now);
  view.summary = summary_text(comparison);
  if (options.gate) view.gate = gate_view(*options.gate);
  view.changes = list_of(comparison.changes, change_view);
  view.notes = list_of(comparison.notes, printable);
  for (const auto& change : comparison.changes)
    if (change.is_setting) view.settings.push_back(change_text(change));
  view.case_count = std::to_string(comparison.cases.size());
  view.changed_count = beyond(changed, 0);
  view.more_changed = beyond(changed, options.most_cases);
  view.same_count = beyond(same, 0);
  view.more_same = beyond(same, on_page::kSameShown);
  return view;
}

}  // namespace peakbench::compare
