#include "reports/report/view_time.h"

#include <algorithm>
#include <cmath>

#include "reports/analysis/timing.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/time_text.h"
#include "reports/render/words.h"
#include "reports/report/view_group.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using statistics::Direction;

bool is_timed(const CaseResult& result) { return ran(result) && result.throughput; }

// Processors that timing had to itself, as far as is known.
double cores_of(const result::Run& run, const CaseResult& result) {
  const auto said =
      run.environment.is_object() ? run.environment.find("logical_cores") : run.environment.end();
  if (said != run.environment.end() && said->is_number_integer() && said->get<std::int64_t>() > 0)
    return said->get<double>();
  return static_cast<double>(std::max<std::int64_t>(result.throughput->threads, 1));
}

std::string cores_text(double cores) { return plain_number(std::round(cores * 10) / 10); }

std::vector<RoundView> rounds_view(const result::Throughput& throughput, double cores) {
  std::vector<RoundView> rounds;
  for (const auto& round : throughput.rounds) {
    const auto other = round.other_busy_cores;
    rounds.push_back({.number = grouped(round.round + 1),
                      .place = grouped(round.place + 1),
                      .step_ms = milliseconds(statistics::median_of(round.step_times_ns)),
                      .other_cores = other ? cores_text(*other) : "",
                      .busy = other && is_busy(*other, cores)});
  }
  return rounds;
}

}  // namespace

std::string tied_with(const CaseResult& fastest, const Group& group) {
  std::string names;
  for (const CaseResult* other : group.cases) {
    if (other == &fastest || !is_timed(*other) || breaks_promise(*other)) continue;
    const auto difference = time_against(*other->throughput, *fastest.throughput);
    if (!has_interval(difference) || is_told(difference)) continue;
    const std::string mark = mark_of(*other);
    names += (names.empty() ? "" : ", ") + printable(row_name(other->spec));
    if (!mark.empty()) names += " (" + mark + ")";
  }
  return names;
}

std::optional<TimeView> time_view(const CaseResult& result, const Group& group) {
  if (!is_timed(result) || !group.reference || group.reference == &result ||
      !group.reference->throughput)
    return std::nullopt;
  const auto difference = time_against(*result.throughput, *group.reference->throughput);
  if (difference.ratio <= 0) return std::nullopt;
  const bool interval = has_interval(difference);
  return TimeView{.percent = signed_percent(difference.ratio - 1),
                  .interval = interval_text(difference),
                  .half_width = half_width_text(difference),
                  .rounds = grouped(static_cast<std::int64_t>(difference.samples)),
                  .more_rounds = interval && difference.more ? grouped(*difference.more) : "",
                  .no_interval = no_interval_text(difference),
                  .faster = difference.direction == Direction::kBetter,
                  .slower = difference.direction == Direction::kWorse,
                  .noise = interval && !is_told(difference)};
}

void add_throughput(const CaseResult& result, const Group& group, RowView& row) {
  if (!is_timed(result)) return;
  const result::Throughput& throughput = *result.throughput;
  row.step_ms = milliseconds(throughput.step_ns.median);
  row.step_min_ms = milliseconds(throughput.step_ns.min);
  row.step_p90_ms = milliseconds(throughput.step_ns.p90);
  row.step_count = grouped(throughput.step_ns.count);
  row.samples_per_second = decimal(throughput.samples_per_second, 4);
  if (throughput.tokens_per_second)
    row.tokens_per_second = decimal(*throughput.tokens_per_second, 4);
  row.clock = printable(spaced(throughput.clock));
  if (throughput.threads > 0) row.threads = grouped(throughput.threads);
  row.rounds = rounds_view(throughput, cores_of(*group.run, result));
  row.time = time_view(result, group);
}

bool has_intervals(const CaseResult& result, const Group& group) {
  return std::ranges::all_of(group.cases, [&](const CaseResult* other) {
    return !is_timed(*other) || has_interval(time_against(*result.throughput, *other->throughput));
  });
}

void add_timing(const Group& group, GroupView& view) {
  Disturbance load;
  double cores = 1;
  std::size_t rounds = 0;
  for (const CaseResult* result : group.cases) {
    if (!is_timed(*result)) continue;
    cores = cores_of(*group.run, *result);
    load.add(*result->throughput, cores);
    rounds = std::max(rounds, result->throughput->rounds.size());
  }
  if (rounds > 0) view.round_count = grouped(static_cast<std::int64_t>(rounds));
  for (const RowView& row : view.rows) {
    if (!row.time) continue;
    (row.time->interval.empty() ? view.lacks_intervals : view.has_intervals) = true;
    if (row.time->noise) view.has_noise = true;
  }
  if (load.busy > 0)
    view.busy = BusyView{.most = cores_text(load.most),
                         .cores = cores_text(cores),
                         .count = grouped(static_cast<std::int64_t>(load.busy)),
                         .timings = grouped(static_cast<std::int64_t>(load.rounds))};
}

}  // namespace peakbench::reports
