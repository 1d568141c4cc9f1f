// How fast a case is against others, with what is known of how surely; and whether the machine was
// left alone while it was timed.
#include <algorithm>
#include <cmath>

#include "reports/analysis/timing.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/time_text.h"
#include "reports/render/words.h"
#include "reports/report/view.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using result::CaseResult;
using statistics::Verdict;

bool is_timed(const CaseResult& result) {
  return result.status == result::Status::kOk && result.throughput;
}

// Processors that timing had to itself, as far as is known.
double cores_of(const result::Run& run, const CaseResult& result) {
  const auto said =
      run.environment.is_object() ? run.environment.find("logical_cores") : run.environment.end();
  if (said != run.environment.end() && said->is_number_integer() && said->get<std::int64_t>() > 0)
    return said->get<double>();
  return static_cast<double>(std::max<std::int64_t>(result.throughput->threads, 1));
}

std::string cores_text(double cores) { return plain_number(std::round(cores * 10) / 10); }

json rounds_view(const result::Throughput& throughput, double cores) {
  json rounds = json::array();
  for (const auto& round : throughput.rounds) {
    json view{{"number", grouped(round.round + 1)},
              {"place", grouped(round.place + 1)},
              {"step_ms", milliseconds(statistics::median_of(round.step_times_ns))}};
    if (round.other_busy_cores) {
      view["other_cores"] = cores_text(*round.other_busy_cores);
      view["busy"] = is_busy(*round.other_busy_cores, cores);
    }
    rounds.push_back(std::move(view));
  }
  return rounds;
}

// The other cases that could be as fast as the fastest, each with its mark; not those that broke
// their promise.
std::string tied_with(const CaseResult& fastest, const Group& group) {
  std::string names;
  for (const CaseResult* other : group.cases) {
    if (other == &fastest || !is_timed(*other) || breaks_promise(*other)) continue;
    const auto difference = time_against(*other->throughput, *fastest.throughput);
    if (!has_interval(difference) || is_told(difference)) continue;
    const std::string mark = mark_of(*other);
    names += (names.empty() ? "" : ", ") + printable(stack_text(other->spec));
    if (!mark.empty()) names += " (" + mark + ")";
  }
  return names;
}

}  // namespace

json time_view(const CaseResult& result, const Group& group) {
  if (!is_timed(result) || !group.reference || group.reference == &result ||
      !group.reference->throughput)
    return false;
  const auto difference = time_against(*result.throughput, *group.reference->throughput);
  if (difference.ratio <= 0) return false;
  const bool interval = has_interval(difference);
  return {{"percent", signed_percent(difference.ratio - 1)},
          {"interval", interval_text(difference)},
          {"half_width", half_width_text(difference)},
          {"rounds", grouped(static_cast<std::int64_t>(difference.samples))},
          {"faster", difference.verdict == Verdict::kBetter},
          {"slower", difference.verdict == Verdict::kWorse},
          {"noise", interval && !is_told(difference)},
          {"more_rounds", interval && difference.more ? grouped(*difference.more) : ""},
          {"no_interval", no_interval_text(difference)}};
}

void add_throughput(const CaseResult& result, const Group& group, json& row) {
  if (!is_timed(result)) return;
  const result::Throughput& throughput = *result.throughput;
  row["step_ms"] = milliseconds(throughput.step_ns.median);
  row["step_min_ms"] = milliseconds(throughput.step_ns.min);
  row["step_p90_ms"] = milliseconds(throughput.step_ns.p90);
  row["step_count"] = grouped(throughput.step_ns.count);
  row["samples_per_second"] = decimal(throughput.samples_per_second, 4);
  if (throughput.tokens_per_second)
    row["tokens_per_second"] = decimal(*throughput.tokens_per_second, 4);
  row["clock"] = printable(spaced(throughput.clock));
  if (throughput.threads > 0) row["threads"] = grouped(throughput.threads);
  row["rounds"] = rounds_view(throughput, cores_of(*group.run, result));
  row["time"] = time_view(result, group);
  if (!row["time"].is_object()) return;
  row["step_percent"] = row["time"]["percent"];
  row["slower"] = row["time"]["slower"];
  row["faster"] = row["time"]["faster"];
}

bool has_intervals(const CaseResult& result, const Group& group) {
  return std::ranges::all_of(group.cases, [&](const CaseResult* other) {
    return !is_timed(*other) || has_interval(time_against(*result.throughput, *other->throughput));
  });
}

json fastest_view(const CaseResult* fastest, const Group& group) {
  if (!fastest) return false;
  json view = best_view(*fastest, group);
  view["step_ms"] = milliseconds(fastest->throughput->step_ns.median);
  view["tied"] = tied_with(*fastest, group);
  view["time"] = time_view(*fastest, group);
  // Then the reference is one of `tied`.
  if (view["time"].is_object() && view["time"]["noise"]) view["time"] = false;
  if (view["time"].is_object()) view["percent"] = view["time"]["percent"];
  return view;
}

json timing_view(const Group& group, const json& rows) {
  Disturbance load;
  double cores = 1;
  std::size_t rounds = 0;
  for (const CaseResult* result : group.cases) {
    if (!is_timed(*result)) continue;
    cores = cores_of(*group.run, *result);
    load.add(*result->throughput, cores);
    rounds = std::max(rounds, result->throughput->rounds.size());
  }
  const auto some = [&](const char* field) {
    return std::any_of(rows.begin(), rows.end(), [field](const json& row) {
      if (!row.contains("time") || !row["time"].is_object()) return false;
      const json& value = row["time"][field];
      return value.is_boolean() ? value.get<bool>() : !value.get<std::string>().empty();
    });
  };
  json view{{"round_count", rounds == 0 ? "" : grouped(static_cast<std::int64_t>(rounds))},
            {"has_intervals", some("interval")},
            {"has_noise", some("noise")},
            {"lacks_intervals", some("no_interval")}};
  if (load.busy > 0)
    view["busy"] = {{"most", cores_text(load.most)},
                    {"cores", cores_text(cores)},
                    {"count", grouped(static_cast<std::int64_t>(load.busy))},
                    {"timings", grouped(static_cast<std::int64_t>(load.rounds))}};
  return view;
}

}  // namespace peakbench::reports
