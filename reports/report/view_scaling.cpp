#include "reports/report/view_scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/report/group.h"
#include "result/axes.h"
#include "result/device.h"
#include "trace/lifetimes.h"

namespace peakbench::reports {
namespace {

using result::Axis;
using result::CaseResult;

constexpr double kMiB = 1024.0 * 1024;
// Peaks are whole blocks of the allocator, so that not even a linear law is one to the byte.
constexpr double kSameSlope = 0.05;

std::optional<std::int64_t> size_of(const CaseResult& result, Axis axis) {
  if (axis == Axis::kBatchSize) return result.spec.batch_size;
  return result.spec.sequence_length;
}

// Tokens of a step, or its samples where they have none.
std::int64_t units_of(const CaseResult& result) {
  return result.spec.batch_size * result.spec.sequence_length.value_or(1);
}

// Cases of one table, by stack (in the order of the plan) and size.
struct ScalingTable {
  const CaseResult* first = nullptr;
  std::vector<std::string> stacks;
  std::map<std::string, std::map<std::int64_t, const CaseResult*>> cases;
  std::map<std::int64_t, bool> sizes;

  void add(const CaseResult& result, std::int64_t size) {
    if (!first) first = &result;
    const auto stack = row_name(result.spec);
    if (!cases.contains(stack)) stacks.push_back(stack);
    cases[stack].emplace(size, &result);
    sizes[size] = true;
  }
};

nlohmann::json table_key(const CaseResult& result, Axis axis) {
  result::Setting setting = result.spec;
  setting.strategies.clear();
  setting.torch.clear();
  setting.build.clear();
  return result::all_but(setting, axis);
}

std::vector<ScalingTable> tables_of(const result::Run& run, Axis axis) {
  std::vector<ScalingTable> tables;
  std::map<nlohmann::json, std::size_t> places;
  for (const CaseResult& result : run.cases) {
    const auto size = size_of(result, axis);
    if (!size || !result.added_for.empty()) continue;
    const auto [found, is_new] = places.try_emplace(table_key(result, axis), tables.size());
    if (is_new) tables.emplace_back();
    tables[found->second].add(result, *size);
  }
  std::erase_if(tables, [](const ScalingTable& table) { return table.sizes.size() < 2; });
  return tables;
}

struct GrownPeak {
  std::int64_t size = 0;
  double units = 0, bytes = 0;
  bool in_update = false;  // the optimizer step's peak, which no sample adds to
};

double slope(const GrownPeak& a, const GrownPeak& b) {
  return (b.bytes - a.bytes) / (b.units - a.units);
}

// The first point from which on all slopes are the last one; the last but one where none is.
std::size_t first_on_line(const std::vector<GrownPeak>& points) {
  const double last = slope(points[points.size() - 2], points.back());
  std::size_t first = points.size() - 2;
  while (first > 0 &&
         std::abs(slope(points[first - 1], points[first]) - last) <= kSameSlope * std::abs(last))
    --first;
  return first;
}

ScalingPeakView peak_view(std::int64_t size, const CaseResult* result) {
  ScalingPeakView view;
  view.size = grouped(size);
  if (!result) {
    view.status = "not run";
  } else if (const auto peak = peak_of(*result); ran(*result) && peak) {
    view.gib = gib(*peak);
    view.bytes = grouped(*peak);
  } else {
    view.status = printable(status_label(result->status));
  }
  return view;
}

ScalingRowView row_view(const ScalingTable& table, const std::string& stack) {
  ScalingRowView view;
  view.strategy = printable(stack);
  const auto& cases = table.cases.at(stack);
  std::vector<GrownPeak> points;
  for (const auto& [size, asked] : table.sizes) {
    const auto found = cases.find(size);
    const CaseResult* result = found == cases.end() ? nullptr : found->second;
    view.peaks.push_back(peak_view(size, result));
    if (!view.peaks.back().gib.empty())
      points.push_back(
          {size, static_cast<double>(units_of(*result)), static_cast<double>(*peak_of(*result)),
           result->memory->peak_phase == trace::to_string(trace::Phase::kOptimizerStep)});
  }
  view.bends = points.size() < 3;
  if (view.bends) return view;
  const std::size_t first = first_on_line(points);
  view.bends = first == points.size() - 2 || points[first].in_update;
  if (view.bends) return view;
  const double last = slope(points[points.size() - 2], points.back());
  view.mib_per_unit = decimal(last / kMiB, 4);
  view.bytes_per_unit = decimal(last, 12);
  view.linear_from = grouped(points[first].size);
  return view;
}

ScalingView table_view(const ScalingTable& table, Axis axis) {
  const result::CaseSpec& spec = table.first->spec;
  ScalingView view;
  view.model = printable(selection_text(spec.model));
  view.device = printable(spec.device);
  view.axis = result::row_of(axis).label;
  view.unit = spec.sequence_length ? "token" : "sample";
  view.emulated = result::is_emulated(*table.first);
  auto values = result::plain_values(spec);
  values.erase(result::row_of(axis).name);
  view.settings = settings_view(values);
  for (const auto& [size, asked] : table.sizes) view.sizes.push_back(grouped(size));
  view.size_count = std::to_string(view.sizes.size());
  for (const std::string& stack : table.stacks) view.rows.push_back(row_view(table, stack));
  return view;
}

}  // namespace

std::vector<ScalingView> scaling_view(const std::vector<result::Run>& runs) {
  std::vector<ScalingView> list;
  for (const result::Run& run : runs) {
    for (const Axis axis : {Axis::kBatchSize, Axis::kSequenceLength}) {
      for (const ScalingTable& table : tables_of(run, axis)) {
        ScalingView view = table_view(table, axis);
        view.anchor = "scaling-" + std::to_string(list.size() + 1);
        if (runs.size() > 1) view.run_title = printable(run.title);
        list.push_back(std::move(view));
      }
    }
  }
  return list;
}

}  // namespace peakbench::reports
