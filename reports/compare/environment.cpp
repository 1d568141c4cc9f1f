#include "reports/compare/environment.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

namespace peakbench::compare {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const std::string& key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->dump(-1, ' ', false, json::error_handler_t::replace);
}

// Differences in these say nothing about a figure.
bool is_incidental(const std::string& key) {
  static const std::set<std::string> keys{"host", "timeout_s", "memory_limit_bytes", "gate"};
  return keys.count(key) != 0;
}

void compare_objects(const json& base, const json& now, std::vector<Change>& changes) {
  std::set<std::string> keys;
  for (const auto* object : {&base, &now})
    if (object->is_object())
      for (const auto& [key, value] : object->items()) keys.insert(key);
  for (const auto& key : keys) {
    const auto before = text_of(base, key), after = text_of(now, key);
    if (!is_incidental(key) && before != after) changes.push_back({key, before, after, 0});
  }
}

bool is_emulated(const result::CaseResult& result) { return result.emulation.has_value(); }

// A real card's name and memory as the run tells it. A run on real and emulated cards tells only
// the last one's.
std::string card_of(const result::Run& run) {
  if (text_of(run.environment, "emulated") == "true") return "";
  const auto name = text_of(run.environment, "card");
  const auto memory = text_of(run.environment, "card_memory_bytes");
  return memory.empty() ? name : fmt::format("{} ({} bytes)", name, memory);
}

const result::CaseResult* find_case(const result::Run& run, const std::string& id) {
  for (const auto& result : run.cases)
    if (result.spec.id == id) return &result;
  return nullptr;
}

}  // namespace

std::vector<Change> changes_between(const result::Run& base, const result::Run& now) {
  std::vector<Change> changes;
  if (base.schema_version != now.schema_version)
    changes.push_back({"schema_version", base.schema_version, now.schema_version, 0});
  compare_objects(base.environment, now.environment, changes);
  compare_objects(base.settings, now.settings, changes);
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> of_cases;
  for (const auto& after : now.cases) {
    const auto* before = find_case(base, after.spec.id);
    if (!before) continue;
    std::vector<Change> own;
    compare_objects(before->settings, after.settings, own);
    if (before->spec.seed != after.spec.seed)
      own.push_back(
          {"seed", std::to_string(before->spec.seed), std::to_string(after.spec.seed), 0});
    for (const auto& change : own) ++of_cases[{change.name, change.base, change.now}];
  }
  for (const auto& [key, count] : of_cases)
    changes.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  return changes;
}

std::string why_not_comparable(const result::Run& base, const result::CaseResult& before,
                               const result::Run& now, const result::CaseResult& after) {
  if (is_emulated(before) != is_emulated(after))
    return fmt::format("{} has it from an emulated card, {} from a real one",
                       is_emulated(before) ? "BASE" : "NEW", is_emulated(before) ? "NEW" : "BASE");
  if (is_emulated(before)) {
    if (before.emulation->card == after.emulation->card) return "";
    return fmt::format("another emulated card: {} in BASE, {} in NEW", before.emulation->card,
                       after.emulation->card);
  }
  if (after.spec.device.rfind("cuda", 0) != 0) return "";
  const auto was = card_of(base), is = card_of(now);
  if (was == is) return "";
  const auto said = [](const std::string& card) { return card.empty() ? "one not named" : card; };
  return fmt::format("another card: {} in BASE, {} in NEW", said(was), said(is));
}

std::string why_times_differ(const result::Run& base, const result::CaseResult& before,
                             const result::Run& now, const result::CaseResult& after) {
  for (const char* key : {"cpu", "logical_cores"}) {
    const auto was = text_of(base.environment, key), is = text_of(now.environment, key);
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
