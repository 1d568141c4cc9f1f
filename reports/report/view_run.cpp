// How the figures were obtained: command, environment, settings; and what was not measured.
#include <map>
#include <set>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/report/view.h"
#include "result/device.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using result::CaseResult;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

json fact(const std::string& name, const nlohmann::ordered_json& value) {
  const auto called = [&](const std::string& unit) {
    return printable(spaced(name.substr(0, name.size() - unit.size())));
  };
  if (value == 0 && name == "memory_limit_bytes")
    return {{"name", called("_bytes")}, {"value", "none"}};
  if (value == 0 && name == "threads") return {{"name", "threads"}, {"value", "default"}};
  if (value.is_number_integer() && ends_with(name, "_bytes")) {
    const auto bytes = value.get<std::int64_t>();
    return {{"name", called("_bytes")},
            {"value", gib(bytes) + " GiB"},
            {"exact", grouped(bytes) + " bytes"}};
  }
  if (value.is_number_integer() && ends_with(name, "_ns")) {
    const auto time = value.get<std::int64_t>();
    return {{"name", called("_ns")}, {"value", duration(time)}, {"exact", grouped(time) + " ns"}};
  }
  if (value.is_number_integer() && ends_with(name, "_s"))
    return {{"name", called("_s")}, {"value", std::to_string(value.get<std::int64_t>()) + " s"}};
  json view{{"name", printable(spaced(name))}};
  if (value.is_string()) {
    view["value"] = printable(value.get<std::string>());
  } else if (value.is_boolean()) {
    view["value"] = value.get<bool>() ? "yes" : "no";
  } else if (value.is_number_integer()) {
    view["value"] = std::to_string(value.get<std::int64_t>());
  } else {
    view["value"] = printable(value.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return view;
}

void add_facts(const nlohmann::ordered_json& object, const std::string& prefix, json& facts) {
  for (const auto& [name, value] : object.items()) {
    if (value.is_null() || (value.is_string() && value.get<std::string>().empty())) continue;
    if (value.is_object()) {
      add_facts(value, prefix + name + " ", facts);
    } else {
      facts.push_back(fact(prefix + name, value));
    }
  }
}

// Missing figures, joined by what and why: a thousand cases with one reason are one line.
class Missing {
 public:
  void add(const std::string& what, const std::string& reason, const std::string& id) {
    cases_[{what, reason.empty() ? "no reason was recorded" : reason}].insert(id);
  }

  json view() const {
    json list = json::array();
    for (const auto& [key, ids] : cases_) {
      json first = json::array();
      for (const std::string& id : ids) {
        if (first.size() < kShown) first.push_back(printable(id));
      }
      list.push_back({{"what", key.first},
                      {"reason", printable(key.second)},
                      {"one", ids.size() == 1},
                      {"count", grouped(static_cast<std::int64_t>(ids.size()))},
                      {"cases", std::move(first)}});
    }
    return list;
  }

 private:
  static constexpr std::size_t kShown = 3;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> cases_;
};

// Nothing is to be found out about the case that the others are compared with.
bool wants_check(const CaseResult& result) {
  return result.equivalence && is_claimed(*result.equivalence, result.spec.id);
}

void add_missing(const CaseResult& result, Missing& missing) {
  const std::string& id = result.spec.id;
  if (result.status == result::Status::kHostFailure) {
    missing.add("The case", result.reason, id);
    return;
  }
  if (result::is_emulated(result)) {
    missing.add("Time", "an emulated card has no clock: its events are numbered", id);
  } else if (!result.throughput && result.status == result::Status::kOk) {
    missing.add("Throughput", result.throughput_reason, id);
  }
  if (result.status == result::Status::kOk && !result.memory) missing.add("Memory", "", id);
  if (wants_check(result)) missing.add("Equivalence of training", result.equivalence->reason, id);
}

}  // namespace

nlohmann::json facts_view(const nlohmann::ordered_json& object) {
  json facts = json::array();
  if (object.is_object()) add_facts(object, "", facts);
  return facts;
}

// A device with the facts of its cases, once; a run that was resumed elsewhere has it twice.
json devices_view(const result::Run& run) {
  json list = json::array();
  std::set<std::pair<std::string, std::string>> seen;
  for (const CaseResult& result : run.cases) {
    json facts = facts_view(device_facts(result));
    if (facts.empty() || !seen.emplace(result.spec.device, facts.dump()).second) continue;
    list.push_back({{"device", printable(result.spec.device)}, {"facts", std::move(facts)}});
  }
  return list;
}

nlohmann::json run_view(const result::Run& run) {
  return {{"title", printable(run.title)},
          {"created", printable(date_for_people(run.created))},
          {"status", printable(run.status)},
          {"command", printable(shell_quoted(run.command))},
          {"suite", printable(run.suite)},
          {"schema_version", printable(run.schema_version)},
          {"environment", facts_view(run.environment)},
          {"devices", devices_view(run)},
          {"settings", facts_view(run.settings)}};
}

nlohmann::json not_measured_view(const std::vector<result::Run>& runs, const Anatomies& anatomies) {
  Missing missing;
  for (const result::Run& run : runs) {
    for (const CaseResult& result : run.cases)
      if (result.added_for.empty()) add_missing(result, missing);
  }
  for (const auto& [result, anatomy] : anatomies) {
    if (!anatomy.known()) missing.add("Timeline", anatomy.cause, result->spec.id);
  }
  return missing.view();
}

}  // namespace peakbench::reports
