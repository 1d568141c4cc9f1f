#include "reports/run/view_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "records/axes.h"
#include "records/device.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/group.h"
#include "trace/lifetimes.h"

namespace peakbench::reports {
namespace {

std::string note_of(const records::FitCell& cell) {
  std::string note = cell.reason;
  const auto add = [&note](const std::string& text) {
    if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
  };
  if (!cell.fails.empty()) add((cell.largest ? "the next one fails: " : "") + cell.fails);
  for (const auto& against : cell.against) add("not monotone: " + against);
  return printable(note);
}

std::string label_of(const std::string& state) {
  if (state == "does_not_fit") return "does not fit";
  if (state == "not_run") return "not run";
  return state == "unknown" ? "not known" : printable(state);
}

// `searched`: a largest value was looked for; otherwise there is one value, and it fits or not.
FitCellView cell_view(const records::FitCell& cell, bool searched) {
  FitCellView view;
  view.card = printable(cell.card);
  view.state = printable(cell.state);
  view.state_label = label_of(cell.state);
  view.fits = cell.state == "fits" || cell.largest.has_value();
  view.at_least = view.fits && cell.state == "unknown";
  if (cell.largest && searched) view.largest = grouped(*cell.largest);
  if (cell.takes_bytes) view.takes = gib(*cell.takes_bytes);
  view.is_least = cell.is_least;
  if (cell.left_bytes)
    (*cell.left_bytes < 0 ? view.lacks : view.left) = gib(std::abs(*cell.left_bytes));
  view.note = note_of(cell);
  return view;
}

}  // namespace

FitView fit_view(const records::FitGrid& grid, std::size_t index, const std::string& run_title) {
  FitView view;
  view.anchor = fmt::format("fit-{}", index + 1);
  view.label = printable(grid.label);
  view.run_title = run_title;
  std::istringstream lines(grid.answer);
  for (std::string line; std::getline(lines, line);) view.answers.push_back(printable(line));
  for (const auto& cell : grid.cells) {
    const auto name = printable(cell.card);
    if (std::ranges::find(view.cards, name, &FitCardView::name) == view.cards.end())
      view.cards.push_back({name, gib(cell.card_memory_bytes)});
  }
  for (const auto& cell : grid.cells) {
    const auto name = printable(cell.row);
    auto row = std::ranges::find(view.rows, name, &FitRowView::name);
    if (row == view.rows.end()) {
      view.rows.push_back({name, std::vector<FitCellView>(view.cards.size())});
      row = view.rows.end() - 1;
    }
    const auto column = std::ranges::find(view.cards, printable(cell.card), &FitCardView::name);
    row->cells[static_cast<std::size_t>(column - view.cards.begin())] =
        cell_view(cell, !grid.label.empty());
  }
  return view;
}

namespace {

using records::Axis;
using records::CaseResult;

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
  records::Setting setting = result.spec;
  setting.strategies.clear();
  setting.torch.clear();
  setting.build.clear();
  setting.ranks.reset();
  return records::all_but(setting, axis);
}

std::vector<ScalingTable> tables_of(const records::Run& run, Axis axis) {
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
  const records::CaseSpec& spec = table.first->spec;
  ScalingView view;
  view.model = printable(selection_text(spec.model));
  view.device = printable(spec.device);
  view.axis = records::row_of(axis).label;
  view.unit = spec.sequence_length ? "token" : "sample";
  view.emulated = records::is_emulated(*table.first);
  auto values = records::plain_values(spec);
  values.erase(records::row_of(axis).name);
  view.settings = settings_view(values);
  for (const auto& [size, asked] : table.sizes) view.sizes.push_back(grouped(size));
  view.size_count = std::to_string(view.sizes.size());
  for (const std::string& stack : table.stacks) view.rows.push_back(row_view(table, stack));
  return view;
}

}  // namespace

std::vector<ScalingView> scaling_view(const std::vector<records::Run>& runs) {
  std::vector<ScalingView> list;
  for (const records::Run& run : runs) {
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
