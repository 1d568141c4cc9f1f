// The first page: the newest runs, every case by card, what changed last.
#include <algorithm>
#include <map>
#include <set>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/report/settings.h"
#include "reports/site/names.h"
#include "reports/site/views.h"

namespace peakbench::site {
namespace {

using history::Metric;
using history::Series;
using nlohmann::json;
using reports::printable;

constexpr std::size_t kRecentRuns = 12;

// The newest run of each suite of the branch, the newest first.
std::vector<const history::RunRow*> latest_runs(const Contents& contents) {
  std::vector<const history::RunRow*> latest;
  std::set<std::string> suites;
  for (const auto& run : contents.runs)
    if (run.labels.branch == contents.branch && suites.insert(run.suite).second)
      latest.push_back(&run);
  return latest;
}

std::string spark_end(const Trend& trend) {
  const auto path = spark_path(trend, Metric::kAllocated);
  return path.empty() ? "" : path.substr(path.rfind(' ') + 1);
}

void add_change(const Trend& trend, json& row) {
  const auto* before = trend.size() < 2 ? nullptr : &trend[trend.size() - 2];
  const auto& last = trend.back();
  const auto change = change_words(before, last, Metric::kAllocated);
  row["change"] = change;
  if (!change.empty()) {
    const bool more = *last.point.allocated_bytes > *before->point.allocated_bytes;
    row["more"] = more;
    row["less"] = !more;
  }
  row["incomparable"] = !last.break_reason.empty();
  row["break_reason"] = printable(last.break_reason);
}

json row_view(const Series& series, const Trend& trend, const std::set<std::int64_t>& newest) {
  const auto& last = trend.back();
  const auto& point = last.point;
  json row{{"case", printable(series.case_id)},
           {"href", trend_page(series)},
           {"model", printable(series.text("model"))},
           {"strategy", printable(series.text("strategy"))},
           {"setting", setting_text(series)},
           {"options", printable(series.device_options)},
           {"ok", point.status == "ok"},
           {"spark", spark_path(trend, Metric::kAllocated)},
           {"spark_y", spark_end(trend)},
           {"run", std::to_string(point.run)},
           {"old", newest.count(point.run) == 0}};
  if (point.status != "ok")
    row["status"] = printable(reports::status_label(result::status_from_string(point.status)));
  if (point.allocated_bytes) {
    row["gib"] = reports::gib(*point.allocated_bytes);
    row["bytes"] = reports::grouped(*point.allocated_bytes);
  }
  if (point.step_ns) row["step_ms"] = reports::milliseconds(*point.step_ns);
  add_change(trend, row);
  return row;
}

json card_view(const std::string& card, json rows, bool emulated) {
  const auto some = [&](const char* field) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const json& row) { return !row.value(field, std::string()).empty(); });
  };
  json view{{"card", printable(card)},
            {"emulated", emulated},
            {"has_step", some("step_ms")},
            {"has_options", some("options")}};
  view["rows"] = std::move(rows);
  return view;
}

}  // namespace

std::string setting_text(const Series& series) {
  std::string text;
  for (const auto& setting : reports::settings_view(series.axes))
    text += (text.empty() ? "" : ", ") + setting["short"].get<std::string>();
  return text;
}

json index_view(const Contents& contents, const std::vector<Trend>& recent) {
  std::set<std::int64_t> newest;
  json latest = json::array(), list = json::array(), changes = json::array();
  for (const auto* run : latest_runs(contents)) {
    newest.insert(run->number);
    latest.push_back(run_view(contents, *run, ""));
  }
  std::map<std::string, std::pair<json, bool>> cards;
  for (std::size_t i = 0; i < contents.series.size(); ++i) {
    const auto& series = contents.series[i];
    auto row = row_view(series, recent[i], newest);
    if (!row["change"].get_ref<const std::string&>().empty() && !row["old"]) changes.push_back(row);
    auto& card = cards[series.card];
    if (card.first.is_null()) card.first = json::array();
    card.first.push_back(std::move(row));
    card.second = series.emulated;
  }
  for (auto& [card, rows] : cards)
    list.push_back(card_view(card, std::move(rows.first), rows.second));
  json runs = json::array();
  for (std::size_t i = 0; i < std::min(kRecentRuns, contents.runs.size()); ++i)
    runs.push_back(run_view(contents, contents.runs[i], ""));
  return {{"site", site_view(contents, "")},
          {"latest", latest},
          {"cards", list},
          {"changes", changes},
          {"recent", runs}};
}

}  // namespace peakbench::site
