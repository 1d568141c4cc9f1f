#include "reports/report/view_run.h"

#include <algorithm>
#include <map>
#include <set>

#include "reports/analysis/environment.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "result/device.h"

namespace peakbench::reports {
namespace {

using result::CaseResult;

// Missing figures, joined by what and why: a thousand cases with one reason are one line.
class Missing {
 public:
  void add(const std::string& what, const std::string& reason, const std::string& id) {
    cases_[{what, reason.empty() ? "no reason was recorded" : reason}].insert(id);
  }

  std::vector<MissingView> view() const {
    std::vector<MissingView> list;
    for (const auto& [key, ids] : cases_) {
      std::vector<std::string> first;
      for (const std::string& id : ids) {
        if (first.size() < kShown) first.push_back(printable(id));
      }
      list.push_back({.what = key.first,
                      .reason = printable(key.second),
                      .count = grouped(static_cast<std::int64_t>(ids.size())),
                      .one = ids.size() == 1,
                      .cases = std::move(first)});
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

// A device with the facts of its cases, once; a run that was resumed elsewhere has it twice.
std::vector<DeviceView> devices_view(const result::Run& run) {
  std::vector<DeviceView> list;
  for (const CaseResult& result : run.cases) {
    const auto build = build_text(result.spec);
    DeviceView device{printable(result.spec.device + (build.empty() ? "" : ", " + build)),
                      facts_view(device_facts(result))};
    const bool known = std::ranges::find(list, device) != list.end();
    if (!known && !device.facts.empty()) list.push_back(std::move(device));
  }
  return list;
}

}  // namespace

RunView run_view(const result::Run& run) {
  return {.title = printable(run.title),
          .created = printable(date_for_people(run.created)),
          .status = printable(run.status),
          .command = printable(shell_quoted(run.command)),
          .suite = printable(run.suite),
          .environment = facts_view(run.environment),
          .devices = devices_view(run),
          .settings = facts_view(run.settings)};
}

std::vector<MissingView> not_measured_view(const std::vector<result::Run>& runs,
                                           const Anatomies& anatomies) {
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
