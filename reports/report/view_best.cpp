#include "reports/report/view_best.h"

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/report/view_verdict.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;

// What does not train as it promised is no answer, however little it needs.
template <typename Figure>
const CaseResult* least(const Group& group, Figure figure) {
  const CaseResult* best = nullptr;
  for (const CaseResult* result : group.cases) {
    if (!ran(*result) || breaks_promise(*result) || !figure(*result)) continue;
    if (!best || *figure(*result) < *figure(*best)) best = result;
  }
  return best;
}

std::optional<std::int64_t> step_of(const CaseResult& result) {
  return result.throughput ? std::optional(result.throughput->step_ns.median) : std::nullopt;
}

std::optional<std::int64_t> comparable_peak(const CaseResult& result) {
  return replays_steps(result) ? std::nullopt : peak_of(result);
}

std::optional<std::int64_t> peak_of_same_training(const CaseResult& result) {
  return trains_differently(result) ? std::nullopt : comparable_peak(result);
}

std::string against(double ours, double reference) {
  return reference == 0 ? "" : signed_percent(ours / reference - 1);
}

// Who, training what, at what cost beside.
template <typename View>
View named(const CaseResult& best, const Group& group) {
  View view;
  view.strategy = printable(row_name(best.spec));
  view.beside = beside_text(best);
  view.is_reference = &best == group.reference;
  view.different = trains_differently(best);
  view.claimed = only_claims_training(best);
  return view;
}

BestView best_view(const CaseResult& lowest, const Group& group) {
  const std::int64_t bytes = *peak_of(lowest);
  auto view = named<BestView>(lowest, group);
  view.gib = gib(bytes);
  view.bytes = grouped(bytes);
  if (lowest.emulation && lowest.emulation->verdict)
    if (const auto verdict = verdict_view(*lowest.emulation->verdict); verdict.doubtful)
      view.doubt = verdict.word;
  if (const auto reserved = lowest.memory->peak_reserved_bytes) view.reserved = gib(*reserved);
  const auto reference = reference_peak(group);
  if (reference && &lowest != group.reference)
    view.percent = against(static_cast<double>(bytes), static_cast<double>(*reference));
  if (&lowest != group.reference && group.reference) {
    view.time = time_view(lowest, group);
  }
  return view;
}

}  // namespace

const CaseResult* lowest_of(const Group& group) { return least(group, comparable_peak); }

// Of rounds too few for an interval noise may be all there is: then none is called the fastest.
const CaseResult* fastest_of(const Group& group) {
  const CaseResult* best = least(group, step_of);
  return best && has_intervals(*best, group) ? best : nullptr;
}

std::optional<BestView> lowest_view(const Group& group) {
  const CaseResult* lowest = lowest_of(group);
  return lowest ? std::optional(best_view(*lowest, group)) : std::nullopt;
}

// Where the reference itself trains another problem, nothing is said of who trains as it does.
std::optional<BestView> lowest_same_view(const Group& group) {
  if (group.reference && trains_differently(*group.reference)) return std::nullopt;
  const CaseResult* same = least(group, peak_of_same_training);
  const bool told = !same || same == lowest_of(group) || same == group.reference;
  return told ? std::nullopt : std::optional(best_view(*same, group));
}

std::optional<FastestView> fastest_view(const Group& group) {
  const CaseResult* fastest = fastest_of(group);
  if (!fastest) return std::nullopt;
  auto view = named<FastestView>(*fastest, group);
  view.step_ms = milliseconds(fastest->throughput->step_ns.median);
  view.tied = tied_with(*fastest, group);
  view.time = time_view(*fastest, group);
  if (view.time && view.time->noise) view.time.reset();  // then the reference is one of `tied`
  if (view.time) view.percent = view.time->percent;
  return view;
}

std::vector<LeftOutView> left_out_view(const Group& group) {
  std::vector<LeftOutView> list;
  for (const CaseResult* result : group.cases)
    if (ran(*result) && breaks_promise(*result))
      list.push_back({printable(row_name(result->spec)), list.empty()});
  return list;
}

}  // namespace peakbench::reports
