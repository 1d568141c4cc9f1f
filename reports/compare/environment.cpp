#include "reports/compare/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "reports/analysis/environment.h"
#include "result/device.h"
#include "result/run_facts.h"

namespace peakbench::compare {
namespace {

using nlohmann::json;
using reports::fact_of;
using reports::fact_text;
using result::is_emulated;
using Keys = std::set<std::string>;

Keys incidental(result::FactOf of) {
  const auto names = names_where(of, &result::RunFact::is_incidental);
  return {names.begin(), names.end()};
}

void add_keys(const json& object, Keys& keys) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) keys.insert(key);
}

// Which PyTorch and which driver decide as much as a setting does.
bool is_setting_of_environment(const std::string& key) {
  return key.starts_with("libtorch") || key.starts_with("driver");
}

void compare_objects(const json& base, const json& now, std::vector<Change>& changes,
                     const Keys& left_out, bool are_settings) {
  Keys keys;
  add_keys(base, keys);
  add_keys(now, keys);
  for (const auto& key : keys) {
    const auto before = fact_text(base, key), after = fact_text(now, key);
    if (left_out.count(key) != 0 || before == after) continue;
    changes.push_back({key, before, after, 0, are_settings || is_setting_of_environment(key)});
  }
}

// What cases of either run say of their devices, and runs of schema 1.0 said for all of them.
Keys keys_of_devices(const result::Run& base, const result::Run& now) {
  Keys keys;
  for (const auto* run : {&base, &now})
    for (const auto& result : run->cases) add_keys(reports::device_facts(result), keys);
  return keys;
}

// As the worker names it where it said something of the card, else as the case does.
std::string emulated_card_of(const result::CaseResult& result) {
  return result.emulation ? result.emulation->card : result.spec.device;
}

// Files of a schema before 1.4 say nothing of builds.
void compare_plugins(const result::CaseResult& before, const result::CaseResult& after,
                     std::vector<Change>& changes) {
  if (before.plugins.empty() || after.plugins.empty()) return;
  for (const auto& change : changed_plugins(before.plugins, after.plugins))
    changes.push_back({(change.kind == result::kScript ? "script " : "plugin ") + change.file,
                       "sha256 " + result::short_hash(change.before),
                       "sha256 " + result::short_hash(change.now), 0, false});
}

}  // namespace

std::vector<Change> changes_between(const result::Run& base, const result::Run& now) {
  std::vector<Change> changes;
  if (base.schema_version != now.schema_version)
    changes.push_back({"schema_version", base.schema_version, now.schema_version, 0, false});
  auto left_out = keys_of_devices(base, now);
  left_out.merge(incidental(result::FactOf::kEnvironment));
  compare_objects(base.environment, now.environment, changes, left_out, false);
  const auto of_settings = incidental(result::FactOf::kSettings);
  compare_objects(base.settings, now.settings, changes, of_settings, true);
  std::map<std::tuple<std::string, std::string, std::string, bool>, std::size_t> of_cases;
  for (const auto& after : now.cases) {
    const auto* before = result::find_case(base, after.spec.id);
    if (!before) continue;
    std::vector<Change> own;
    compare_objects(before->settings, after.settings, own, of_settings, true);
    Keys said;
    for (const auto* result : {before, &after}) add_keys(reports::device_facts(*result), said);
    for (const auto& key : said)
      if (const auto was = fact_of(*before, base, key), is = fact_of(after, now, key); was != is)
        own.push_back({key, was, is, 0, is_setting_of_environment(key)});
    if (before->spec.seed != after.spec.seed)
      own.push_back(
          {"seed", std::to_string(before->spec.seed), std::to_string(after.spec.seed), 0, true});
    compare_plugins(*before, after, own);
    for (const auto& change : own)
      ++of_cases[{change.name, change.base, change.now, change.is_setting}];
  }
  for (const auto& [key, count] : of_cases)
    changes.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), count, std::get<3>(key)});
  std::stable_partition(changes.begin(), changes.end(),
                        [](const Change& change) { return change.is_setting; });
  return changes;
}

std::string why_not_comparable(const result::Run& base, const result::CaseResult& before,
                               const result::Run& now, const result::CaseResult& after) {
  for (const auto& [side, result] : {std::pair{"BASE", &before}, {"NEW", &after}})
    if (!result->memory) return fmt::format("{} has no memory figures of it", side);
  if (is_emulated(before) != is_emulated(after))
    return fmt::format("{} has it from an emulated card, {} from a real one",
                       is_emulated(before) ? "BASE" : "NEW", is_emulated(before) ? "NEW" : "BASE");
  if (is_emulated(before)) {
    const auto was = emulated_card_of(before), is = emulated_card_of(after);
    if (was == is) return "";
    return fmt::format("another emulated card: {} in BASE, {} in NEW", was, is);
  }
  if (!result::recorded_device(after.spec.device).is_card) return "";
  const auto was = reports::real_card_of(before, base), is = reports::real_card_of(after, now);
  if (was == is) return "";
  const auto said = [](const std::string& card) { return card.empty() ? "one not named" : card; };
  return fmt::format("another card: {} in BASE, {} in NEW", said(was), said(is));
}

std::string why_times_differ(const result::Run& base, const result::CaseResult& before,
                             const result::Run& now, const result::CaseResult& after) {
  for (const auto& key : names_where(result::FactOf::kEnvironment, &result::RunFact::makes_times)) {
    const auto was = fact_of(before, base, key), is = fact_of(after, now, key);
    if (was != is) return fmt::format("another machine: {} is {} in BASE, {} in NEW", key, was, is);
  }
  const auto &was = *before.throughput, &is = *after.throughput;
  if (was.threads != is.threads)
    return fmt::format("{} threads in BASE, {} in NEW", was.threads, is.threads);
  if (was.clock != is.clock)
    return fmt::format("another clock: {} in BASE, {} in NEW", was.clock, is.clock);
  return "";
}

}  // namespace peakbench::compare
