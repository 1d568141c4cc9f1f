#include "reports/trends/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/columns.h"
#include "base/printable.h"
#include "reports/render/format.h"

namespace peakbench::trends {
namespace {

// "1.234 GiB" or "12.3 ms"; "" where there is none.
std::string figure_text(const Point& point, Metric metric) {
  const auto value = figure(point, metric);
  if (!value) return "";
  return metric == Metric::kStep ? reports::milliseconds(*value) + " ms"
                                 : reports::gib(*value) + " GiB";
}

std::string remark(const TrendPoint& point) {
  std::string text = point.break_reason;
  if (point.clock_back) text += text.empty() ? "clock went back" : "; clock went back";
  return text;
}

}  // namespace

std::string runs_table(const std::vector<RunRow>& runs, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& run : runs) {
    const auto ok = fmt::format("{}/{}", run.ok_cases, run.cases);
    rows.push_back({std::to_string(run.number), reports::date_for_people(run.created),
                    run.labels.branch, short_commit(run.labels), run.labels.verdict,
                    run.status == "complete" ? "" : run.status, ok, run.suite, run.title,
                    run.conditions.libtorch, reports::grouped(run.stored_bytes), run.labels.note});
  }
  return table_text({{"run", 0, true},
                     {"created", 2},
                     {"branch", 1},
                     {"commit", 0},
                     {"verdict", 3},
                     {"status", 3},
                     {"ok", 4, true},
                     {"suite", 5},
                     {"title", 6},
                     {"LibTorch", 8},
                     {"bytes", 9, true},
                     {"note", 7}},
                    rows, width);
}

std::string run_text(const RunRow& run) {
  std::string text = fmt::format("run {}  {}\n", run.number, printable(run.title));
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<10} {}\n", name, printable(value));
  };
  add("created", reports::date_for_people(run.created));
  add("added", reports::date_for_people(run.added));
  add("branch", run.labels.branch);
  add("commit", run.labels.commit);
  add("verdict", run.labels.verdict);
  add("note", run.labels.note);
  add("suite", run.suite);
  add("status", run.status == "complete" ? "" : run.status);
  add("LibTorch", run.conditions.libtorch);
  add("driver", run.conditions.driver);
  add("Peakbench", run.peakbench);
  add("stored", reports::grouped(run.stored_bytes) + " bytes");
  return text;
}

std::string left_out_text(std::int64_t number, const std::string& why) {
  return fmt::format("note: run {} is left out: {}\n", number, why);
}

std::string change_text(const std::vector<TrendPoint>& trend, std::size_t place, Metric metric) {
  if (place == 0 || !trend[place].break_reason.empty()) return "";
  const auto now = figure(trend[place].point, metric);
  const auto before = figure(trend[place - 1].point, metric);
  if (!now || !before) return "";
  if (metric != Metric::kStep)
    return *now == *before ? "0" : reports::signed_grouped(*now - *before) + " B";
  if (*before == 0) return "";
  return reports::signed_percent(reports::ratio_of(*now, *before) - 1) + "%";
}

std::string sparkline(const std::vector<TrendPoint>& trend, Metric metric) {
  static constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const auto [least, most] =
      extremes(trend, metric).value_or(std::pair<std::int64_t, std::int64_t>());
  std::string line;
  for (const auto& point : trend) {
    const auto value = figure(point.point, metric);
    const double place = !value || most == least ? 0
                                                 : static_cast<double>(*value - least) /
                                                       static_cast<double>(most - least);
    line += value ? kBlocks.at(static_cast<std::size_t>(std::lround(place * 7))) : " ";
  }
  return line;
}

std::string trends_table(const std::vector<NamedTrend>& trends, Metric metric, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& trend : trends) {
    if (trend.points.empty()) continue;
    const auto& last = trend.points.back();
    const bool ok = last.point.status == "ok";
    const auto& series = trend.series;
    const bool named = series.case_id.find(series.card) != std::string::npos;
    rows.push_back({series.case_id, ok ? figure_text(last.point, metric) : last.point.status,
                    change_text(trend.points, trend.points.size() - 1, metric),
                    sparkline(trend.points, metric), std::to_string(trend.points.size()),
                    std::to_string(last.run->number), named ? "" : series.card,
                    series.device_options});
  }
  return table_text({{"case", 0},
                     {"last", 0, true},
                     {"change", 1, true},
                     {"trend", 2},
                     {"points", 5, true},
                     {"run", 4, true},
                     {"card", 3},
                     {"options", 6}},
                    rows, width);
}

std::string points_table(const NamedTrend& trend, Metric metric, int width) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < trend.points.size(); ++i) {
    const auto& point = trend.points[i];
    const bool ok = point.point.status == "ok";
    rows.push_back({std::to_string(point.run->number), reports::date_for_people(point.run->created),
                    short_commit(point.run->labels),
                    ok || metric == Metric::kStep ? figure_text(point.point, metric) : "",
                    change_text(trend.points, i, metric), doubt(point.point),
                    ok ? "" : point.point.status, point.run->labels.verdict, remark(point)});
  }
  const auto& series = trend.series;
  const bool named = series.case_id.find(series.card) != std::string::npos;
  auto head = printable(series.case_id);
  if (!named) head += "\non " + printable(series.card);
  if (!series.device_options.empty()) head += "\nwith " + printable(series.device_options);
  if (series.emulated) head += "\nEmulated card: the allocator's own bytes, no times.";
  return head + "\n" +
         table_text({{"run", 0, true},
                     {"created", 3},
                     {"commit", 1},
                     {"figure", 0, true},
                     {"change", 0, true},
                     {"figures", 2},
                     {"status", 2},
                     {"verdict", 4},
                     {"not comparable with the point before", 5}},
                    rows, width);
}

nlohmann::ordered_json to_json(const NamedTrend& trend) {
  const auto& series = trend.series;
  using Json = nlohmann::ordered_json;
  Json json{{"case", series.case_id},
            {"card", series.card},
            {"device_options", series.device_options},
            {"emulated", series.emulated}};
  json["points"] = Json::array();
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  for (const auto& point : trend.points)
    json["points"].push_back({{"run", point.run->number},
                              {"created", point.run->created},
                              {"commit", point.run->labels.commit},
                              {"verdict", point.run->labels.verdict},
                              {"status", point.point.status},
                              {"peak_allocated_bytes", or_null(point.point.allocated_bytes)},
                              {"peak_requested_bytes", or_null(point.point.requested_bytes)},
                              {"peak_reserved_bytes", or_null(point.point.reserved_bytes)},
                              {"figures", point.point.figures},
                              {"step_ns", or_null(point.point.step_ns)},
                              {"samples_per_second", or_null(point.point.samples_per_second)},
                              {"tokens_per_second", or_null(point.point.tokens_per_second)},
                              {"comparable_with_previous", point.break_reason.empty()},
                              {"break", point.break_reason},
                              {"clock_went_back", point.clock_back}});
  return json;
}

}  // namespace peakbench::trends
