#include "reports/run/view_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/analysis/timing.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/view_group.h"

namespace peakbench::reports {
namespace {

using records::CaseResult;
using statistics::Direction;

bool is_timed(const CaseResult& result) { return ran(result) && result.throughput; }

// Processors that timing had to itself, as far as is known.
double cores_of(const records::Run& run, const CaseResult& result) {
  const auto said =
      run.environment.is_object() ? run.environment.find("logical_cores") : run.environment.end();
  if (said != run.environment.end() && said->is_number_integer() && said->get<std::int64_t>() > 0)
    return said->get<double>();
  return static_cast<double>(std::max<std::int64_t>(result.throughput->threads, 1));
}

std::string cores_text(double cores) { return plain_number(std::round(cores * 10) / 10); }

std::vector<RoundView> rounds_view(const records::Throughput& throughput, double cores) {
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
                  .rounds = grouped(difference.samples),
                  .faster = difference.direction == Direction::kBetter,
                  .slower = difference.direction == Direction::kWorse,
                  .noise = interval && !is_told(difference),
                  .more_rounds = interval && difference.more ? grouped(*difference.more) : "",
                  .no_interval = no_interval_text(difference)};
}

void add_throughput(const CaseResult& result, const Group& group, RowView& row) {
  if (!is_timed(result)) return;
  const records::Throughput& throughput = *result.throughput;
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
  if (rounds > 0) view.round_count = grouped(rounds);
  for (const RowView& row : view.rows) {
    if (!row.time) continue;
    (row.time->interval.empty() ? view.lacks_intervals : view.has_intervals) = true;
    if (row.time->noise) view.has_noise = true;
  }
  if (load.busy > 0)
    view.busy = BusyView{.most = cores_text(load.most),
                         .cores = cores_text(cores),
                         .count = grouped(load.busy),
                         .timings = grouped(load.rounds)};
}

namespace {

using records::StepWork;

constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kPerTera = 1e12, kPerGiga = 1e9;
constexpr int kDigits = 4;

std::string least_text(const StepWork& work) {
  if (!work.bound) return "";
  return decimal(static_cast<double>(work.bound->least_step_ns) / kNanosecondsPerMillisecond, 3);
}

std::string percent_of(std::int64_t ours, std::int64_t reference) {
  if (reference <= 0) return "";
  return signed_percent(ratio_of(ours - reference, reference));
}

// "3,352 GB/s; fp32 66.9, tf32 494.7 TFLOP/s": of what the steps compute in.
std::string rates_text(const StepWork& work) {
  std::vector<std::string> rates;
  for (const auto& [precision, flops] : work.total.flops_by_precision) {
    const auto rate = work.bound->flops_per_second.find(precision);
    rates.push_back(
        rate == work.bound->flops_per_second.end()
            ? fmt::format("{} not known", precision)
            : fmt::format("{} {} TFLOP/s", precision,
                          decimal(static_cast<double>(rate->second) / kPerTera, kDigits)));
  }
  const auto memory =
      decimal(static_cast<double>(work.bound->memory_bytes_per_second) / kPerGiga, kDigits);
  return printable(
      fmt::format("{} GB/s{}{}", memory, rates.empty() ? "" : ", ", fmt::join(rates, ", ")));
}

WorkRowView row_of(const CaseResult& result, std::size_t number, const CaseResult* reference) {
  const StepWork& work = *result.work;
  const StepWork* against =
      reference != nullptr && reference != &result && reference->work ? &*reference->work : nullptr;
  const auto& total = work.total;
  WorkRowView row;
  row.number = std::to_string(number);
  row.strategy = printable(row_name(result.spec));
  row.is_reference = &result == reference;
  row.flops = flops_text(total.flops);
  row.exact_flops = grouped(total.flops);
  if (against != nullptr) row.flops_percent = percent_of(total.flops, against->total.flops);
  if (total.recomputed_flops > 0) row.recomputed = flops_text(total.recomputed_flops);
  row.moved_gib = gib(total.read_bytes + total.written_bytes);
  row.operators = grouped(total.operators);
  if (total.device) {
    row.launches = grouped(total.device->kernel_launches);
    row.to_host_gib = gib(total.device->copies_to_host_bytes);
    row.to_device_gib = gib(total.device->copies_to_device_bytes);
  }
  row.least_ms = least_text(work);
  row.costs = fmt::format("{}", fmt::join(work_costs(work, against), "; "));
  return row;
}

}  // namespace

std::optional<WorkView> work_view(const Group& group) {
  WorkView view;
  std::set<std::string> rates, missing;
  for (std::size_t i = 0; i < group.cases.size(); ++i) {
    const CaseResult& result = *group.cases[i];
    if (!ran(result) || !result.work) continue;
    const StepWork& work = *result.work;
    view.step = grouped(work.step + 1);
    if (result.memory) view.steps = grouped(result.memory->steps);
    view.rows.push_back(row_of(result, i + 1, group.reference));
    view.has_device |= work.total.device.has_value();
    view.has_bound |= work.bound.has_value();
    view.has_costs |= !view.rows.back().costs.empty();
    if (work.bound) rates.insert(rates_text(work));
    for (const auto& [name, calls] : work.without_formula) missing.insert(printable(name));
  }
  if (view.rows.empty()) return std::nullopt;
  view.rates = fmt::format("{}", fmt::join(rates, "; "));
  view.missing = fmt::format("{}", fmt::join(missing, ", "));
  return view;
}

}  // namespace peakbench::reports
