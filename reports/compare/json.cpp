// A comparison for machines. Fields: docs/how-to/compare.md.
#include "reports/compare/json.h"

#include <fmt/format.h>

#include "json/csv_text.h"
#include "json/fields.h"
#include "reports/compare/compare.h"

namespace peakbench::compare {
namespace {

using Json = nlohmann::ordered_json;

template <typename Item, typename Make>
Json list(const std::vector<Item>& items, Make make) {
  auto all = Json::array();
  for (const auto& item : items) all.push_back(make(item));
  return all;
}

Json side_json(const Side& side) {
  return {{"label", side.label},     {"title", side.title},
          {"created", side.created}, {"commit", side.commit},
          {"status", side.status},   {"schema_version", side.schema_version}};
}

Json change_json(const Change& change) {
  return {{"name", change.name},
          {"base", change.base},
          {"new", change.now},
          {"cases", change.cases},
          {"setting", change.is_setting}};
}

Json measure_json(const Measure& measure) {
  return {{"where", measure.where},           {"space", measure.space},
          {"figure", measure.figure},         {"base_bytes", measure.base},
          {"new_bytes", measure.now},         {"difference_bytes", measure.now - measure.base},
          {"allowed_bytes", measure.allowed}, {"verdict", to_string(measure.direction)},
          {"held", measure.is_held}};
}

Json category_json(const CategoryChange& change) {
  return {{"category", change.category},
          {"base_bytes", change.base},
          {"new_bytes", change.now},
          {"difference_bytes", change.now - change.base}};
}

Json part_json(const Growth& part) {
  return {{"requested_difference_bytes", part.requested_bytes},
          {"allocated_difference_bytes", part.block_bytes},
          {"category", part.category},
          {"allocated_in", part.allocated_in},
          {"module", part.module},
          {"operator", part.op}};
}

Json appeared_json(const Appeared& one) {
  return {{"count", one.count},
          {"requested_bytes", one.requested_bytes},
          {"allocated_bytes", one.block_bytes},
          {"category", one.category},
          {"allocated_in", one.allocated_in},
          {"module", one.module},
          {"operator", one.op},
          {"name", one.name},
          {"shape", one.shape},
          {"dtype", one.dtype}};
}

Json held_json(const analysis::Held& held) {
  return {{"tensors", held.tensors},
          {"requested_bytes", held.requested_bytes},
          {"allocated_bytes", held.block_bytes},
          {"dtypes", held.dtypes}};
}

Json cause_json(const analysis::Cause& cause) {
  return {{"where", cause.where},
          {"operator", cause.op},
          {"requested_difference_bytes", cause.requested_difference()},
          {"allocated_difference_bytes", cause.block_difference()},
          {"base", held_json(cause.base)},
          {"new", held_json(cause.now)}};
}

Json category_causes_json(const analysis::CategoryCauses& category) {
  return {{"category", category.category},
          {"requested_difference_bytes", category.requested_difference},
          {"allocated_difference_bytes", category.block_difference},
          {"causes", list(category.causes, cause_json)}};
}

Json growth_json(const PhaseGrowth& growth) {
  return {{"phase", growth.phase},
          {"base_phase", growth.base_phase},
          {"verdict", to_string(growth.direction)},
          {"requested_difference_bytes", growth.requested_bytes},
          {"allocated_difference_bytes", growth.block_bytes},
          {"causes", list(growth.causes, category_causes_json)},
          {"parts", list(growth.parts, part_json)},
          {"appeared", list(growth.appeared, appeared_json)}};
}

Json figures_json(const VerdictChange& change) {
  return {{"base", change.base},
          {"new", change.now},
          {"verdict", to_string(change.direction)},
          {"reason", change.reason}};
}

Json case_json(const CaseComparison& one) {
  Json json{{"id", one.id},
            {"slug", one.slug},
            {"emulated", one.emulated},
            {"state", to_string(one.state)},
            {"base_status", one.base_status},
            {"new_status", one.now_status},
            {"reason", one.reason}};
  const bool compared = one.state == CaseState::kCompared;
  json["memory"] = nullptr;
  if (compared)
    json["memory"] = {{"verdict", to_string(one.memory)},
                      {"figures", list(one.measures, measure_json)},
                      {"categories", list(one.categories, category_json)},
                      {"at_peak", one.at_peak ? growth_json(*one.at_peak) : Json(nullptr)},
                      {"growth", list(one.growth, growth_json)},
                      {"growth_note", one.growth_note}};
  json["figures"] = one.verdict ? figures_json(*one.verdict) : Json(nullptr);
  json["throughput"] = one.speed ? to_json(*one.speed) : Json(nullptr);
  return json;
}

Json counts_json(const Comparison& comparison) {
  auto states = Json::object();
  for (const auto state :
       {CaseState::kCompared, CaseState::kNew, CaseState::kMissing, CaseState::kFailed,
        CaseState::kStillFailed, CaseState::kRecovered, CaseState::kRefused})
    states[to_string(state)] = count(comparison, state);
  auto memory = Json::object(), throughput = Json::object();
  for (const auto direction : {Direction::kWorse, Direction::kBetter, Direction::kSame})
    memory[to_string(direction)] = count_memory(comparison, direction);
  for (const auto direction :
       {Direction::kWorse, Direction::kBetter, Direction::kSame, Direction::kUnknown})
    throughput[to_string(direction)] = count_speed(comparison, direction);
  return {{"cases", states}, {"memory", memory}, {"throughput", throughput}};
}

}  // namespace

nlohmann::ordered_json to_json(const SpeedDifference& difference) {
  Json json{{"verdict", to_string(difference.direction)},
            {"samples", difference.samples},
            {"ratio", finite_or_name(difference.ratio)},
            {"low", finite_or_name(difference.low)},
            {"high", finite_or_name(difference.high)},
            {"more_samples", nullptr},
            {"reason", difference.reason}};
  if (difference.more) json["more_samples"] = *difference.more;
  return json;
}

std::string to_csv(const Comparison& comparison) {
  auto rows = Json::array();
  for (const auto& one : comparison.cases) {
    const Json of_case{{"id", one.id},
                       {"state", to_string(one.state)},
                       {"base_status", one.base_status},
                       {"new_status", one.now_status}};
    for (const auto& measure : one.measures) {
      rows.push_back(of_case);
      rows.back().update(measure_json(measure));
    }
    if (one.measures.empty()) rows.push_back(of_case);
  }
  return csv_text(rows);
}

nlohmann::ordered_json to_json(const Speed& speed) {
  Json json{{"base_median_ns", speed.base_ns}, {"new_median_ns", speed.now_ns}};
  json.update(to_json(speed.difference));
  return json;
}

nlohmann::ordered_json to_json(const Comparison& comparison) {
  return {{"schema_version", kComparisonSchemaVersion},
          {"base", side_json(comparison.base)},
          {"new", side_json(comparison.now)},
          {"policy", result::to_json(comparison.policy)},
          {"counts", counts_json(comparison)},
          {"changes", list(comparison.changes, change_json)},
          {"incomparable", comparison.incomparable},
          {"notes", comparison.notes},
          {"cases", list(comparison.cases, case_json)}};
}

}  // namespace peakbench::compare
