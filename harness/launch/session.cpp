#include "launch/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "errors/errors.h"
#include "launch/case.h"
#include "launch/environment.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/rounds.h"
#include "launch/run_folder.h"
#include "launch/together.h"
#include "launch/write_pace.h"
#include "result/device.h"

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
          Runner& runner, RunListener& listener)
      : plan_(plan),
        jobs_(options.jobs),
        runner_(runner),
        listener_(listener),
        folder_(folder),
        run_(open_run(plan, options, folder_)),
        host_(host_environment()),
        checkpoints_(plan, folder_.path(), options.parameters),
        results_(plan.cases.size()) {
    for (const auto& planned : plan.cases)
      has_times_.push_back(result::device_from(planned.spec.device).has_times);
    take_over();
  }

  result::Run go() {
    const auto groups = pending_groups();
    // Killed between the two, the run before left what nobody needs any more.
    const auto known = ended();
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) checkpoints_.close(i, known);
    listener_.run_started(place_of_.size(), plan_.cases.size() - place_of_.size());
    write("running");
    bool whole = true;
    for (auto at = groups.begin(); whole && at != groups.end();) {
      const auto untimed = [this](const Group& group) { return is_untimed(group); };
      const auto end = jobs_ > 1 ? std::find_if_not(at, groups.end(), untimed) : at;
      whole = at == end ? run_group(*at) : run_together({at, end});
      at = std::max(at + 1, end);
    }
    save_now();
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
      if (results_[index]->status == result::Status::kOk) to_show_.push_back(index);
    if (!timed.empty()) save_now();
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
      listener_.worker_started(turn(index, result::JobMode::kMemory));
      auto order = order_for(index);
      order.checkpoint = checkpoints_.open(index, ended());
      auto found = measure_memory(order, runner_, listener(index));
      listener_.worker_ended(place_of_.at(index));
      if (!found) return false;
      results_[index] = std::move(found);
      keep_times(index);
    }
    to_close_.push_back(index);
    const bool over = !is_to_be_timed(*results_[index], plan_.request) ||
                      missing_rounds(*results_[index], plan_.request.repetitions).empty();
    if (over) {
      pending_.erase(index);
      to_show_.push_back(index);
    }
    save();
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
      listener_.worker_started(at);
      const auto end = measure_round(order_for(index), {round, static_cast<std::int64_t>(place)},
                                     runner_, listener(index), *results_[index]);
      listener_.worker_ended(place_of_.at(index));
      if (end == RoundEnd::kInterrupted) return false;
      if (end == RoundEnd::kOver || missing.size() == 1) pending_.erase(index);
      if (results_[index]->status != result::Status::kOk) to_show_.push_back(index);
      save();
    }
    return true;
  }

  // Emulated cards have no times, and their workers nothing to do with each other.
  bool is_untimed(const Group& group) const {
    return std::ranges::none_of(group, [this](std::size_t index) { return has_times_[index]; });
  }

  // False: interrupted.
  bool run_together(const std::vector<Group>& groups) {
    Group all, to_run;
    for (const auto& group : groups)
      for (const auto index : group)
        if (!results_[index]) all.push_back(index);
    for (const auto index : all)
      if (plan_.cases[index].decided)
        take_ended(index, decided_case(plan_.cases[index]));
      else
        to_run.push_back(index);
    std::size_t shown = 0;
    const auto show_in_order = [&] {
      for (; shown < all.size() && results_[all[shown]]; ++shown) to_show_.push_back(all[shown]);
      save();
    };
    show_in_order();
    const auto place = [&](std::size_t i) { return place_of_.at(to_run[i]); };
    const auto orders = memory_orders(to_run);
    const Measure measure = [&](std::size_t i, const Listener& listener) {
      return measure_memory(orders[i], runner_, listener);
    };
    const Hearing hearing{
        [&](std::size_t i) { listener_.worker_started(turn(to_run[i], result::JobMode::kMemory)); },
        [&](std::size_t i, const result::Progress& at) { listener_.worker_progress(place(i), at); },
        [&](const std::string& text) { listener_.warning(text); },
        [&](std::size_t i, std::optional<result::CaseResult> found) {
          listener_.worker_ended(place(i));
          if (!found) return;
          take_ended(to_run[i], std::move(*found));
          show_in_order();
        },
        [&] { tick(); }};
    measure_together(to_run.size(), jobs_, measure, hearing);
    // Of an interrupted run: those that others before them kept from being shown.
    for (; shown < all.size(); ++shown)
      if (results_[all[shown]]) to_show_.push_back(all[shown]);
    save_now();
    return std::ranges::all_of(all,
                               [this](std::size_t index) { return results_[index].has_value(); });
  }

  std::vector<CaseOrder> memory_orders(const Group& cases) const {
    std::vector<CaseOrder> orders;
    const auto known = ended();
    for (const auto index : cases) {
      orders.push_back(order_for(index));
      orders.back().checkpoint = checkpoints_.open(index, known);
    }
    return orders;
  }

  void take_ended(std::size_t index, result::CaseResult found) {
    results_[index] = std::move(found);
    keep_times(index);
    to_close_.push_back(index);
    pending_.erase(index);
  }

  // What is shown is kept: nobody sees a row that a kill could still take from run.json.
  void save() {
    unsaved_ = true;
    if (pace_.due(results_.size() - pending_.size(), WritePace::Clock::now())) save_now();
  }
  void save_now() {
    if (!unsaved_ && to_show_.empty()) return;
    write("running");
    unsaved_ = false;
    // Not before the result is written: without it the case is run again, and needs the file.
    const auto known = ended();
    for (const auto index : std::exchange(to_close_, {})) checkpoints_.close(index, known);
    for (const auto index : std::exchange(to_show_, {}))
      listener_.case_ended(place_of_.at(index), *results_[index]);
  }
  void tick() {
    listener_.tick();
    try {
      if (unsaved_) save();
    } catch (const HostError&) {  // no fault of the worker's at work: said when it has ended
    }
  }

  Listener listener(std::size_t index) {
    const auto place = place_of_.at(index);
    return {[this, place](const result::Progress& at) { listener_.worker_progress(place, at); },
            [this] { tick(); }, [this](const std::string& text) { listener_.warning(text); }};
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
      if (!results_[i]) ++turn.memory_workers;
      if (!results_[i] && has_times_[i])
        turn.throughput_workers += static_cast<std::size_t>(turn.rounds);
      if (results_[i] && is_to_be_timed(*results_[i], plan_.request))
        turn.throughput_workers += missing_rounds(*results_[i], turn.rounds).size();
    }
    return turn;
  }

  void write(const std::string& status) {
    const auto from = WritePace::Clock::now();
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
    pace_.wrote(from, WritePace::Clock::now());
  }

  const plan::Plan& plan_;
  const std::size_t jobs_;
  Runner& runner_;
  RunListener& listener_;
  const RunFolder& folder_;
  result::Run run_;
  nlohmann::json host_;
  ReferenceCheckpoints checkpoints_;
  std::vector<bool> has_times_;  // the case's device; read once, as turn() asks for all that wait
  std::vector<std::optional<result::CaseResult>> results_;
  std::map<std::size_t, result::CaseResult> to_check_;  // see waits_for()
  std::set<std::size_t> pending_;
  std::map<std::size_t, std::size_t> place_of_;  // of those to run
  WritePace pace_;
  bool unsaved_ = false;
  Group to_show_;   // ended, and not in run.json yet
  Group to_close_;  // measured, and not in run.json yet
};

}  // namespace

bool nothing_to_run(const plan::Plan& plan) {
  return std::all_of(plan.cases.begin(), plan.cases.end(),
                     [](const plan::PlannedCase& planned) { return planned.decided.has_value(); });
}

result::Run run_plan(const plan::Plan& plan, const RunFolder& folder, const SessionOptions& options,
                     Runner& runner, RunListener& listener) {
  return Session(plan, folder, options, runner, listener).go();
}

}  // namespace peakbench::launch
