#include "launch/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/run_folder.h"
#include "result/errors.h"

namespace peakbench::launch {
namespace {

std::string now_utc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

result::Run new_run(const plan::Plan& plan, const SessionOptions& options) {
  result::Run run;
  run.title = plan.request.title;
  run.created = now_utc();
  run.suite = plan.request.suite_file;
  run.reference = plan.reference;
  run.environment = host_environment();
  run.published = plan.request.published;
  run.command = options.command;
  run.settings = settings_of(plan.request);
  return run;
}

result::Run open_run(const plan::Plan& plan, const SessionOptions& options,
                     const RunFolder& folder) {
  if (options.overwrite) folder.clear();
  if (!folder.holds_run()) return new_run(plan, options);
  if (!options.resume)
    throw ConfigError(fmt::format(
        "{} holds a run already. Continue it with --resume, choose another folder with --out, or "
        "delete it with --overwrite.",
        folder.path()));
  auto run = read_matching_run(folder.path(), plan);
  run.settings = settings_of(plan.request);  // a longer timeout may be why it is resumed
  return run;
}

// The state of a run in memory, by plan index; run.json is made from it after every case.
class Session {
 public:
  Session(const plan::Plan& plan, const SessionOptions& options, Runner& runner, Observer& observer)
      : plan_(plan),
        runner_(runner),
        observer_(observer),
        folder_(options.directory),
        run_(open_run(plan, options, folder_)),
        book_(plan, folder_.path(), options.parameters),
        results_(plan.cases.size()) {
    take_over();
  }

  result::Run go() {
    std::vector<std::size_t> order;
    for (const auto index : execution_order(plan_))
      if (pending_.count(index) > 0) order.push_back(index);
    observer_.run_started(order.size(), plan_.cases.size() - order.size());
    write("running");
    for (std::size_t place = 0; place < order.size() && !interrupted(); ++place)
      if (!run_one(place, order[place])) break;
    write(pending_.empty() ? "complete" : "interrupted");
    return run_;
  }

 private:
  void take_over() {
    std::map<std::string, std::size_t> index_of;
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      index_of[plan_.cases[i].spec.id] = i;
      pending_.insert(i);
    }
    for (auto& one : run_.cases) {
      const auto index = index_of.at(one.spec.id);
      pending_.erase(index);
      results_[index] = std::move(one);
    }
    for (const auto& id : run_.pending) pending_.insert(index_of.at(id));
    run_.cases.clear();
  }

  // False: interrupted.
  bool run_one(std::size_t place, std::size_t index) {
    const auto& planned = plan_.cases[index];
    observer_.case_started(place, planned);
    CaseEnd end;
    if (planned.decided) {
      end.result = decided_case(planned);
    } else {
      end = run_case(order_for(index), runner_, listener());
    }
    if (end.worth_keeping) results_[index] = end.result;
    if (!end.interrupted) pending_.erase(index);
    for (const auto& [name, value] : end.environment.items()) run_.environment[name] = value;
    book_.close(index, pending_);
    write("running");
    if (end.worth_keeping) observer_.case_ended(place, end.result);
    return !end.interrupted;
  }

  CaseListener listener() {
    return {[this](result::JobMode mode, const result::Progress& at) {
              observer_.case_progress(mode, at);
            },
            [this] { observer_.tick(); }};
  }

  CaseOrder order_for(std::size_t index) const {
    std::vector<const result::CaseResult*> ended;
    for (std::size_t i = 0; i < results_.size(); ++i)
      ended.push_back(results_[i] && pending_.count(i) == 0 ? &*results_[i] : nullptr);
    CaseOrder order;
    order.planned = &plan_.cases[index];
    order.request = &plan_.request;
    order.run_directory = folder_.path();
    order.hand_over = book_.open(index, ended);
    order.measured = results_[index];  // there already: its throughput was interrupted
    return order;
  }

  void write(const std::string& status) {
    run_.status = status;
    run_.cases.clear();
    run_.pending.clear();
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (results_[i]) run_.cases.push_back(*results_[i]);
    for (const auto index : pending_) run_.pending.push_back(plan_.cases[index].spec.id);
    result::write_run(run_, folder_.path());
  }

  const plan::Plan& plan_;
  Runner& runner_;
  Observer& observer_;
  RunFolder folder_;
  result::Run run_;
  HandOverBook book_;
  std::vector<std::optional<result::CaseResult>> results_;
  std::set<std::size_t> pending_;
};

}  // namespace

bool nothing_to_run(const plan::Plan& plan) {
  return std::all_of(plan.cases.begin(), plan.cases.end(),
                     [](const plan::PlannedCase& planned) { return planned.decided.has_value(); });
}

result::Run run_plan(const plan::Plan& plan, const SessionOptions& options, Runner& runner,
                     Observer& observer) {
  return Session(plan, options, runner, observer).go();
}

}  // namespace peakbench::launch
