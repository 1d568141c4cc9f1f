// From a comparison to the fields that templates show (reports/compare/fields.cpp). Pure.
#include <fmt/format.h>

#include <algorithm>

#include "reports/compare/render.h"
#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

using nlohmann::json;
using reports::printable;

// A comment is read, not searched: beyond these a page says how many there are more.
constexpr std::size_t kSameShown = 60, kPartsShown = 10, kAppearedShown = 20, kFindingsShown = 10;

json side_view(const Side& side) {
  return {{"label", printable(side.label)},
          {"title", printable(side.title)},
          {"created", printable(reports::date_for_people(side.created))},
          {"commit", printable(side.commit)}};
}

json change_view(const Change& change) {
  return {{"name", printable(reports::spaced(change.name))},
          {"base", printable(change.base)},
          {"now", printable(change.now)},
          {"cases", change.cases == 0 ? "" : std::to_string(change.cases)}};
}

json figure_view(const Measure& measure) {
  const auto where = measure.where == "peak" ? "peak" : reports::phase_label(measure.where);
  return {{"where", printable(measure.space.empty() ? where : where + " of " + measure.space)},
          {"figure", measure.figure},
          {"base_gib", reports::gib(measure.base)},
          {"base_bytes", reports::grouped(measure.base)},
          {"now_gib", reports::gib(measure.now)},
          {"now_bytes", reports::grouped(measure.now)},
          {"difference", short_difference(measure.now - measure.base)},
          {"difference_bytes", reports::grouped(measure.now - measure.base)},
          {"allowed", measure.allowed == 0 ? "" : short_difference(measure.allowed)},
          {"verdict", to_string(measure.verdict)},
          {"worse", measure.verdict == Verdict::kWorse},
          {"better", measure.verdict == Verdict::kBetter},
          {"changed", measure.now != measure.base}};
}

json part_view(const Growth& part) {
  return {{"allocated", short_difference(part.block_bytes)},
          {"requested", short_difference(part.requested_bytes)},
          {"category", printable(reports::category_label(part.category))},
          {"colour", reports::category_colour(part.category)},
          {"phase", printable(reports::phase_label(part.allocated_in))},
          {"module", named(part.module, "no module")},
          {"op", named(part.op, "no operator")},
          {"more", part.block_bytes > 0 || part.requested_bytes > 0}};
}

json appeared_view(const Appeared& one) {
  return {{"count", std::to_string(std::abs(one.count))},
          {"requested", reports::grouped(one.requested_bytes)},
          {"allocated", reports::grouped(one.block_bytes)},
          {"gib", reports::gib(one.block_bytes)},
          {"category", printable(reports::category_label(one.category))},
          {"colour", reports::category_colour(one.category)},
          {"phase", printable(reports::phase_label(one.allocated_in))},
          {"module", named(one.module, "no module")},
          {"op", named(one.op, "no operator")},
          {"name", printable(one.name)},
          {"shape", printable(one.shape)},
          {"dtype", printable(one.dtype)},
          {"gone", one.count < 0}};
}

template <typename Item, typename Make>
json first_of(const std::vector<Item>& items, std::size_t most, Make make) {
  json list = json::array();
  for (std::size_t i = 0; i < std::min(items.size(), most); ++i) list.push_back(make(items[i]));
  return list;
}

std::string beyond(std::size_t count, std::size_t shown) {
  return count > shown ? std::to_string(count - shown) : "";
}

// The largest on both sides: a page that shows only what appeared would hide what it replaced.
json appeared_list(const std::vector<Appeared>& all) {
  if (all.size() <= kAppearedShown) return first_of(all, all.size(), appeared_view);
  json list = first_of(all, kAppearedShown - kAppearedShown / 4, appeared_view);
  for (auto at = all.end() - kAppearedShown / 4; at != all.end(); ++at)
    if (at->count < 0) list.push_back(appeared_view(*at));
  return list;
}

json growth_view(const PhaseGrowth& growth) {
  const auto appeared = appeared_list(growth.appeared);
  return {{"phase", printable(reports::phase_label(growth.phase))},
          {"worse", growth.verdict == Verdict::kWorse},
          {"allocated", difference_text(growth.block_bytes)},
          {"requested", difference_text(growth.requested_bytes)},
          {"parts", first_of(largest_first(growth.parts), kPartsShown, part_view)},
          {"more_parts", beyond(growth.parts.size(), kPartsShown)},
          {"appeared", appeared},
          {"has_appeared", !appeared.empty()},
          {"more_appeared", beyond(growth.appeared.size(), appeared.size())}};
}

json category_view(const CategoryChange& change) {
  return {{"label", printable(reports::category_label(change.category))},
          {"colour", reports::category_colour(change.category)},
          {"base_gib", reports::gib(change.base)},
          {"now_gib", reports::gib(change.now)},
          {"difference", short_difference(change.now - change.base)},
          {"difference_bytes", reports::grouped(change.now - change.base)},
          {"worse", change.now > change.base},
          {"changed", change.now != change.base}};
}

json speed_view(const Speed& speed) {
  const auto verdict = speed.verdict.verdict;
  return {{"verdict", to_string(verdict)},
          {"worse", verdict == Verdict::kWorse},
          {"better", verdict == Verdict::kBetter},
          {"base_ms", reports::milliseconds(speed.base_ns)},
          {"now_ms", reports::milliseconds(speed.now_ns)},
          {"ratio", speed.verdict.ratio > 0 ? ratio_text(speed.verdict.ratio) : ""},
          {"text", printable(speed_text(speed.verdict, "processes"))}};
}

const Measure* peak_of(const CaseComparison& one) {
  for (const auto& measure : one.measures)
    if (measure.where == "peak" && measure.space.empty() && measure.figure == "allocated")
      return &measure;
  return nullptr;
}

bool speed_changed(const CaseComparison& one) {
  return one.speed && (one.speed->verdict.verdict == Verdict::kWorse ||
                       one.speed->verdict.verdict == Verdict::kBetter);
}

// How much a reader wants to see it: 0 is first; kUnchanged is told in a line of its own list.
constexpr int kUnchanged = 9;
int rank(const CaseComparison& one) {
  switch (one.state) {
    case CaseState::kRefused:
      return 0;
    case CaseState::kFailed:
      return 1;
    case CaseState::kMissing:
      return 2;
    case CaseState::kRecovered:
      return 6;
    case CaseState::kNew:
      return 7;
    case CaseState::kStillFailed:
      return 8;
    case CaseState::kCompared:
      break;
  }
  if (one.memory == Verdict::kWorse) return 3;
  if (speed_changed(one)) return one.speed->verdict.verdict == Verdict::kWorse ? 4 : 5;
  return one.memory == Verdict::kBetter ? 5 : kUnchanged;
}

bool is_bad(const CaseComparison& one) {
  constexpr int kLastBad = 4;
  return rank(one) <= kLastBad;
}

json case_view(const CaseComparison& one, std::size_t index) {
  json figures = json::array();
  bool some = false;
  for (const auto& measure : one.measures) {
    figures.push_back(figure_view(measure));
    some = some || measure.now != measure.base;
  }
  json view{{"index", std::to_string(index)},
            {"anchor", "case-" + std::to_string(index + 1)},
            {"id", printable(one.id)},
            {"emulated", one.emulated},
            {"state", printable(state_text(one))},
            {"bad", is_bad(one)},
            {"good", one.memory == Verdict::kBetter && !is_bad(one)},
            {"reason", printable(one.reason)},
            {"figures", std::move(figures)},
            {"has_changed_figures", some},
            {"categories", first_of(one.categories, one.categories.size(), category_view)},
            {"growth", first_of(one.growth, one.growth.size(), growth_view)},
            {"growth_note", printable(one.growth_note)}};
  if (const auto* peak = peak_of(one)) view["peak"] = figure_view(*peak);
  if (one.speed) view["speed"] = speed_view(*one.speed);
  return view;
}

json gate_view(const GateNote& gate) {
  json findings = json::array();
  for (std::size_t i = 0; i < std::min(gate.findings.size(), kFindingsShown); ++i)
    findings.push_back(printable(gate.findings[i]));
  return {{"label", gate.label},
          {"passed", gate.passed},
          {"findings", std::move(findings)},
          {"more_findings", beyond(gate.findings.size(), kFindingsShown)}};
}

}  // namespace

json make_view(const Comparison& comparison, const PageOptions& options) {
  std::vector<const CaseComparison*> order;
  for (const auto& one : comparison.cases) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return rank(*a) < rank(*b); });
  json changed = json::array(), same = json::array();
  std::size_t changed_count = 0, same_count = 0;
  bool emulated = false, timed = false;
  for (const auto* one : order) {
    emulated = emulated || one->emulated;
    timed = timed || one->speed;
    if (rank(*one) == kUnchanged) {
      if (same_count++ < kSameShown)
        same.push_back(case_view(*one, changed_count + same_count - 1));
    } else if (changed_count++ < options.most_cases) {
      changed.push_back(case_view(*one, changed_count - 1));
    }
  }
  json notes = json::array();
  for (const auto& note : comparison.notes) notes.push_back(printable(note));
  json view{{"title", printable(comparison.now.title)},
            {"base", side_view(comparison.base)},
            {"now", side_view(comparison.now)},
            {"summary", summary_text(comparison)},
            {"changes", first_of(comparison.changes, comparison.changes.size(), change_view)},
            {"has_changes", !comparison.changes.empty()},
            {"notes", std::move(notes)},
            {"has_emulated", emulated},
            {"has_times", timed},
            {"case_count", std::to_string(comparison.cases.size())},
            {"changed", std::move(changed)},
            {"changed_count", changed_count == 0 ? "" : std::to_string(changed_count)},
            {"more_changed", beyond(changed_count, options.most_cases)},
            {"same", std::move(same)},
            {"same_count", same_count == 0 ? "" : std::to_string(same_count)},
            {"more_same", beyond(same_count, kSameShown)}};
  if (options.gate) view["gate"] = gate_view(*options.gate);
  return view;
}

}  // namespace peakbench::compare
