#include "reports/ab/ab.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "files/file.h"
#include "files/own_file.h"
#include "json/json_text.h"
#include "reports/compare/json.h"
#include "reports/compare/page.h"
#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::ab {
namespace {

using Json = nlohmann::ordered_json;
using result::AbCase;
using result::AbPair;
using statistics::median_of;
using statistics::SpeedDifference;

SpeedDifference difference_of(const std::vector<AbPair>& pairs, double margin,
                              double false_alarms) {
  std::vector<double> logs;
  for (const auto& pair : pairs)
    logs.push_back(std::log(static_cast<double>(median_of(pair.now_ns))) -
                   std::log(static_cast<double>(median_of(pair.base_ns))));
  return statistics::judge_pairs(logs, margin, false_alarms);
}

Json pair_json(const AbPair& pair) {
  return {{"first", pair.base_first ? "base" : "new"},
          {"base_median_ns", median_of(pair.base_ns)},
          {"new_median_ns", median_of(pair.now_ns)},
          {"base_step_times_ns", pair.base_ns},
          {"new_step_times_ns", pair.now_ns}};
}

Json case_json(const AbCase& one, const SpeedDifference& difference) {
  auto pairs = Json::array();
  for (const auto& pair : one.pairs) pairs.push_back(pair_json(pair));
  Json json{{"id", one.id}, {"new_id", one.new_id}, {"problem", one.problem}};
  json.update(compare::to_json(difference));
  json["pairs"] = std::move(pairs);
  return json;
}

std::int64_t typical(const std::vector<AbPair>& pairs, bool base) {
  std::vector<std::int64_t> medians;
  for (const auto& pair : pairs) medians.push_back(median_of(base ? pair.base_ns : pair.now_ns));
  return median_of(std::move(medians));
}

void add_case(compare::Page& page, const AbCase& one, const SpeedDifference& difference) {
  const auto name =
      one.id == one.new_id ? one.id : fmt::format("{} against {}", one.new_id, one.id);
  page.line(0, reports::printable(name));
  if (!one.problem.empty()) page.line(2, reports::printable(one.problem));
  if (!one.pairs.empty())
    page.line(
        2, fmt::format("median step {} -> {} ms", reports::milliseconds(typical(one.pairs, true)),
                       reports::milliseconds(typical(one.pairs, false))));
  page.line(2, fmt::format("{}: {}", to_string(difference.direction),
                           compare::speed_text(difference, "pairs")));
}

}  // namespace

Judged judge(result::AbRun run, double margin, double false_alarms) {
  Judged judged{std::move(run), margin, false_alarms, {}};
  for (const auto& one : judged.run.cases)
    judged.differences.push_back(difference_of(one.pairs, margin, false_alarms));
  return judged;
}

Json to_json(const Judged& judged) {
  const auto& run = judged.run;
  auto cases = Json::array();
  for (std::size_t i = 0; i < run.cases.size(); ++i)
    cases.push_back(case_json(run.cases[i], judged.differences[i]));
  return {{"schema_version", kAbSchemaVersion},
          {"created", run.created},
          {"command", run.command},
          {"base", run.base},
          {"new", run.now},
          {"pairs", run.pairs},
          {"seed", run.seed},
          {"steps", run.steps},
          {"warmup", run.warmup},
          {"threads", run.threads},
          {"margin", judged.margin},
          {"false_alarms", judged.false_alarms},
          {"environment", run.environment},
          {"cases", std::move(cases)}};
}

std::string to_text(const Judged& judged, int width) {
  compare::Page page(width);
  for (std::size_t i = 0; i < judged.run.cases.size(); ++i)
    add_case(page, judged.run.cases[i], judged.differences[i]);
  page.line(0, fmt::format("NEW's step time against BASE's, with an interval that each end leaves "
                           "out by chance in {}% of cases; within {}% either way is the same.",
                           reports::plain_number(judged.false_alarms * 100),
                           reports::plain_number(judged.margin * 100)));
  return page.take();
}

void write(const Judged& judged, const std::string& folder) {
  files::write_file_atomically((std::filesystem::path(folder) / result::kAbFile).string(),
                               files::marked(result::kAbFile, json_text(to_json(judged))));
}

}  // namespace peakbench::ab
