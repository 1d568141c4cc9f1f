#include "reports/compare/ab.h"

#include <fmt/format.h>

#include <cmath>

#include "reports/compare/json.h"
#include "reports/compare/page.h"
#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::compare {
namespace {

using Json = nlohmann::ordered_json;
using statistics::median_of;

Json pair_json(const AbPair& pair) {
  return {{"first", pair.base_first ? "base" : "new"},
          {"base_median_ns", median_of(pair.base_ns)},
          {"new_median_ns", median_of(pair.now_ns)},
          {"base_step_times_ns", pair.base_ns},
          {"new_step_times_ns", pair.now_ns}};
}

Json case_json(const AbCase& one) {
  auto pairs = Json::array();
  for (const auto& pair : one.pairs) pairs.push_back(pair_json(pair));
  Json json{{"id", one.id}, {"new_id", one.new_id}, {"problem", one.problem}};
  json.update(to_json(one.verdict));
  json["pairs"] = std::move(pairs);
  return json;
}

std::int64_t typical(const std::vector<AbPair>& pairs, bool base) {
  std::vector<std::int64_t> medians;
  for (const auto& pair : pairs) medians.push_back(median_of(base ? pair.base_ns : pair.now_ns));
  return median_of(std::move(medians));
}

}  // namespace

SpeedVerdict judge(const std::vector<AbPair>& pairs, double margin, double false_alarms) {
  std::vector<double> logs;
  for (const auto& pair : pairs)
    logs.push_back(std::log(static_cast<double>(median_of(pair.now_ns))) -
                   std::log(static_cast<double>(median_of(pair.base_ns))));
  return statistics::judge_pairs(logs, margin, false_alarms);
}

Json to_json(const AbResult& result) {
  auto cases = Json::array();
  for (const auto& one : result.cases) cases.push_back(case_json(one));
  return {{"schema_version", kAbSchemaVersion},
          {"created", result.created},
          {"command", result.command},
          {"base", result.base},
          {"new", result.now},
          {"pairs", result.pairs},
          {"seed", result.seed},
          {"steps", result.steps},
          {"warmup", result.warmup},
          {"threads", result.threads},
          {"margin", result.margin},
          {"false_alarms", result.false_alarms},
          {"environment", result.environment},
          {"cases", std::move(cases)}};
}

std::string to_text(const AbResult& result, int width) {
  Page page(width);
  for (const auto& one : result.cases) {
    const auto name =
        one.id == one.new_id ? one.id : fmt::format("{} against {}", one.new_id, one.id);
    page.line(0, reports::printable(name));
    if (!one.problem.empty()) page.line(2, reports::printable(one.problem));
    if (!one.pairs.empty())
      page.line(
          2, fmt::format("median step {} -> {} ms", reports::milliseconds(typical(one.pairs, true)),
                         reports::milliseconds(typical(one.pairs, false))));
    page.line(
        2, fmt::format("{}: {}", to_string(one.verdict.verdict), speed_text(one.verdict, "pairs")));
  }
  page.line(0, fmt::format("NEW's step time against BASE's, with an interval that each end leaves "
                           "out by chance in {}% of cases; within {}% either way is the same.",
                           reports::plain_number(result.false_alarms * 100),
                           reports::plain_number(result.margin * 100)));
  return page.take();
}

}  // namespace peakbench::compare
