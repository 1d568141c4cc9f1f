#include "reports/report/view_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/work_text.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;
using result::StepWork;

constexpr double kNanosecondsPerMillisecond = 1e6;
constexpr double kPerTera = 1e12, kPerGiga = 1e9;
constexpr int kDigits = 4;

std::string least_text(const StepWork& work) {
  if (!work.bound) return "";
  return decimal(static_cast<double>(work.bound->least_step_ns) / kNanosecondsPerMillisecond, 3);
}

std::string percent_of(std::int64_t ours, std::int64_t reference) {
  if (reference <= 0) return "";
  return signed_percent(static_cast<double>(ours - reference) / static_cast<double>(reference));
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
