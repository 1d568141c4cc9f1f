#include "launch/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "launch/case.h"
#include "launch/environment.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/rounds.h"
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
  if (!folder.holds_run()) folder.refuse_strangers();
  if (options.overwrite && folder.holds_run()) folder.clear();
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

using Group = std::vector<std::size_t>;  // plan indices

// The state of a run in memory, by plan index; run.json is made from it after every worker.
class Session {
 public:
  Session(const plan::Plan& plan, const RunFolder& folder, const SessionOptions& options,
          Runner& runner, Observer& observer)
      : plan_(plan),
        runner_(runner),
        observer_(observer),
        folder_(folder),
        run_(open_run(plan, options, folder_)),
        host_(host_environment()),
        book_(plan, folder_.path(), options.parameters),
        results_(plan.cases.size()) {
    take_over();
  }

  result::Run go() {
    const auto groups = pending_groups();
    // Killed between the two, the run before left what nobody needs any more.
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) book_.close(i, ended());
    observer_.run_started(place_of_.size(), plan_.cases.size() - place_of_.size());
    write("running");
    for (const auto& group : groups)
      if (!run_group(group)) break;
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
    const auto lost = cases_without_memory();
    for (auto& one : run_.cases) {
      const auto index = index_of.at(one.spec.id);
      if (!is_measured(one)) continue;
      if (waits_for(one, lost)) {
        to_check_[index] = std::move(one);
        continue;
      }
      if (one.status != result::Status::kHostFailure) pending_.erase(index);
      forget_host_failure(one);
      results_[index] = std::move(one);
    }
    for (const auto& id : run_.pending) pending_.insert(index_of.at(id));
    run_.cases.clear();
  }

  // Those that have not been run yet, or that the machine failed.
  std::set<std::string> cases_without_memory() const {
    std::set<std::string> ids;
    for (const auto& planned : plan_.cases) ids.insert(planned.spec.id);
    for (const auto& one : run_.cases)
      if (is_measured(one)) ids.erase(one.spec.id);
    return ids;
  }

  // Measured, but its promise could not be checked because the machine failed its reference, which
  // runs first.
  static bool waits_for(const result::CaseResult& one, const std::set<std::string>& lost) {
    return one.memory && one.equivalence && one.equivalence->verdict == "not_checked" &&
           lost.count(one.equivalence->reference_case) != 0;
  }

  // In the order they run, and numbers their cases so.
  std::vector<Group> pending_groups() {
    std::vector<Group> groups;
    for (auto group : execution_groups(plan_)) {
      std::erase_if(group, [this](std::size_t index) { return pending_.count(index) == 0; });
      for (const auto index : group) place_of_.emplace(index, place_of_.size());
      if (!group.empty()) groups.push_back(std::move(group));
    }
    return groups;
  }

  // False: interrupted.
  bool run_group(const Group& group) {
    bool whole = true;
    for (const auto index : group)
      if (whole && !results_[index]) whole = run_memory(index);
    const auto timed = to_be_timed(group);
    for (std::int64_t round = 0; whole && round < plan_.request.repetitions; ++round)
      whole = run_round(timed, round);
    for (const auto index : timed)
      if (results_[index]->status == result::Status::kOk) end(index);
    return whole;
  }

  Group to_be_timed(Group group) const {
    std::erase_if(group, [this](std::size_t index) {
      return !results_[index] || !is_to_be_timed(*results_[index], plan_.request);
    });
    return group;
  }

  bool run_memory(std::size_t index) {
    const auto& planned = plan_.cases[index];
    if (planned.decided) {
      results_[index] = decided_case(planned);
    } else {
      if (interrupted()) return false;
      observer_.worker_started(turn(index, result::JobMode::kMemory));
      auto order = order_for(index);
      order.hand_over = book_.open(index, ended());
      auto found = measure_memory(order, runner_, listener());
      observer_.worker_ended();
      if (!found) return false;
      results_[index] = std::move(found);
      keep_times(index);
    }
    const bool over = !is_to_be_timed(*results_[index], plan_.request) ||
                      missing_rounds(*results_[index], plan_.request.repetitions).empty();
    if (over) pending_.erase(index);
    write("running");
    // Not before the result is written: without it the case is run again, and needs the file.
    book_.close(index, ended());
    if (over) end(index);
    return true;
  }

  // Its memory was measured again for the sake of its promise: the rounds that it has stay.
  void keep_times(std::size_t index) {
    const auto before = to_check_.find(index);
    auto& result = *results_[index];
    if (before == to_check_.end() || result.status != result::Status::kOk) return;
    result.throughput = before->second.throughput;
    result.throughput_reason = before->second.throughput_reason;
    result.settings.update(before->second.settings);
    result.environment.update(before->second.environment);
    result.wall_ns += before->second.wall_ns;
  }

  bool run_round(const Group& timed, std::int64_t round) {
    const auto order = round_order(timed.size(), round);
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto index = timed[order[place]];
      const auto missing = missing_rounds(*results_[index], plan_.request.repetitions);
      if (pending_.count(index) == 0 || std::ranges::find(missing, round) == missing.end())
        continue;
      if (interrupted()) return false;
      auto at = turn(index, result::JobMode::kThroughput);
      at.round = round;
      at.group_size = timed.size();
      observer_.worker_started(at);
      const auto end = measure_round(order_for(index), {round, static_cast<std::int64_t>(place)},
                                     runner_, listener(), *results_[index]);
      observer_.worker_ended();
      if (end == RoundEnd::kInterrupted) return false;
      if (end == RoundEnd::kOver || missing.size() == 1) pending_.erase(index);
      write("running");
      if (results_[index]->status != result::Status::kOk) this->end(index);
    }
    return true;
  }

  void end(std::size_t index) { observer_.case_ended(place_of_.at(index), *results_[index]); }

  Listener listener() {
    return {[this](const result::Progress& at) { observer_.worker_progress(at); },
            [this] { observer_.tick(); },
            [this](const std::string& text) { observer_.warning(text); }};
  }

  CaseOrder order_for(std::size_t index) const {
    CaseOrder order;
    order.planned = &plan_.cases[index];
    order.request = &plan_.request;
    order.run_directory = folder_.path();
    return order;
  }

  // Those whose memory worker has ended; one that the machine failed is run again.
  std::vector<const result::CaseResult*> ended() const {
    std::vector<const result::CaseResult*> ended;
    for (const auto& one : results_) ended.push_back(one && is_measured(*one) ? &*one : nullptr);
    return ended;
  }

  Turn turn(std::size_t index, result::JobMode mode) const {
    Turn turn;
    turn.place = place_of_.at(index);
    turn.case_id = plan_.cases[index].spec.id;
    turn.mode = mode;
    turn.rounds = plan_.request.repetitions;
    for (const auto i : pending_) {
      const auto& planned = plan_.cases[i];
      if (planned.decided) continue;
      result::CaseResult unknown;
      unknown.spec = planned.spec;
      const auto& known = results_[i] ? *results_[i] : unknown;
      if (!results_[i]) ++turn.memory_workers;
      if (is_to_be_timed(known, plan_.request))
        turn.throughput_workers += missing_rounds(known, turn.rounds).size();
    }
    return turn;
  }

  void write(const std::string& status) {
    run_.status = status;
    run_.cases.clear();
    run_.pending.clear();
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (const auto waits = to_check_.find(i); results_[i] || waits != to_check_.end())
        run_.cases.push_back(results_[i] ? *results_[i] : waits->second);
    for (const auto index : pending_) run_.pending.push_back(plan_.cases[index].spec.id);
    run_.environment = run_environment(std::move(run_.environment), host_, run_.cases);
    try {
      result::write_run(run_, folder_.path());
    } catch (const HostError& error) {
      if (!folder_.holds_run()) throw;
      throw HostError(
          fmt::format("{}\nThe file is as it was after the last worker. The same command with "
                      "--out {} --resume continues.",
                      error.what(), folder_.path()));
    }
  }

  const plan::Plan& plan_;
  Runner& runner_;
  Observer& observer_;
  const RunFolder& folder_;
  result::Run run_;
  nlohmann::json host_;
  HandOverBook book_;
  std::vector<std::optional<result::CaseResult>> results_;
  std::map<std::size_t, result::CaseResult> to_check_;  // see waits_for()
  std::set<std::size_t> pending_;
  std::map<std::size_t, std::size_t> place_of_;  // of those to run
};

}  // namespace

bool nothing_to_run(const plan::Plan& plan) {
  return std::all_of(plan.cases.begin(), plan.cases.end(),
                     [](const plan::PlannedCase& planned) { return planned.decided.has_value(); });
}

result::Run run_plan(const plan::Plan& plan, const RunFolder& folder, const SessionOptions& options,
                     Runner& runner, Observer& observer) {
  return Session(plan, folder, options, runner, observer).go();
}

}  // namespace peakbench::launch
