#include "reports/report/cases_csv.h"

#include "json/csv_text.h"
#include "result/case_json.h"

namespace peakbench::reports {
namespace {

using Json = nlohmann::ordered_json;

// What has a row of its own elsewhere (traces, ranks) or is the same in all of them.
constexpr const char* kLeftOut[] = {"losses",   "ranks",       "plugins",
                                    "settings", "environment", "emulation"};

Json row_of(const result::Run& run, const result::CaseResult& result) {
  Json row{{"run", run.title}};
  row.update(to_json(result));
  for (const auto* name : kLeftOut) row.erase(name);
  if (auto& memory = row["memory"]; memory.is_object())
    for (const auto* name : {"phases", "spaces"}) memory.erase(name);
  if (auto& throughput = row["throughput"]; throughput.is_object())
    for (const auto* name : {"step_times_ns", "rounds"}) throughput.erase(name);
  if (auto& work = row["work"]; work.is_object()) {
    for (const auto* name : {"phases", "flops_by_precision", "without_formula"}) work.erase(name);
    if (auto& bound = work["bound"]; bound.is_object()) bound.erase("flops_per_second");
  }
  const auto* verdict = result::verdict_of(result);
  row["figures"] = verdict == nullptr ? Json() : Json(verdict_word(verdict->kind));
  return row;
}

}  // namespace

std::string cases_csv(const std::vector<result::Run>& runs) {
  Json rows = Json::array();
  for (const auto& run : runs)
    for (const auto& result : run.cases) rows.push_back(row_of(run, result));
  return csv_text(rows);
}

}  // namespace peakbench::reports
