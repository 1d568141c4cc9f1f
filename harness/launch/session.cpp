#include "launch/session.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "launch/case.h"
#include "launch/case_states.h"
#include "launch/interrupt.h"
#include "launch/run_book.h"
#include "launch/run_folder.h"
#include "launch/thread_pool.h"
#include "records/device.h"

namespace peakbench::launch {
namespace {

std::string now_utc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

records::Run new_run(const planning::Plan& plan, const OpenOptions& options) {
  records::Run run;
  run.title = plan.request.title;
  run.created = now_utc();
  run.suite = plan.request.suite_file;
  run.reference = plan.reference;
  run.environment = host_environment(plan);
  run.published = plan.request.published;
  run.command = options.command;
  run.settings = settings_of(plan.request);
  return run;
}

}  // namespace

records::Run open_run(const planning::Plan& plan, const RunFolder& folder,
                      const OpenOptions& options) {
  folder.refuse_links();
  if (!folder.holds_run()) folder.refuse_strangers();
  if (options.overwrite && folder.holds_run()) folder.clear();
  if (!folder.holds_run()) return new_run(plan, options);
  if (!options.resume)
    throw ConfigError(fmt::format(
        "{} holds a run already. {} another folder with --out, or delete it with --overwrite.",
        folder.path(), options.is_resumable ? "Continue it with --resume, choose" : "Choose"));
  auto run = read_matching_run(folder.path(), plan);
  run.settings = settings_of(plan.request);  // a longer timeout may be why it is resumed
  return run;
}

namespace {

// Of each function that runs something: false where it was interrupted.
class Session {
 public:
  Session(const planning::Plan& plan, std::size_t jobs, Runner& runner, RunListener& listener,
          RunBook& book)
      : plan_(plan),
        jobs_(jobs),
        runner_(runner),
        listener_(listener),
        book_(book),
        states_(book.states()) {}

  void go(const std::vector<Cases>& groups) {
    bool whole = run_cards(groups);
    for (auto at = groups.begin(); whole && at != groups.end();) {
      // Emulated cards have no times, and their workers nothing to do with each other.
      const auto apart = [this](const Cases& group) {
        return !has_times(states_, group) && !is_checked(group);
      };
      const auto end = jobs_ > 1 ? std::find_if_not(at, groups.end(), apart) : at;
      whole = at == end ? run_group(*at) : run_together(joined({at, end}));
      at = std::max(at + 1, end);
    }
  }

 private:
  // A reference is run before those that are held against what it trained.
  bool is_checked(const Cases& group) const {
    return std::ranges::any_of(group, [this](std::size_t index) {
      const auto& spec = plan_.cases[index].spec;
      return facts_of(spec.kind).has_promise && records::device_from(spec.device).results_repeat;
    });
  }

  bool run_group(const Cases& group) {
    bool whole = true;
    for (const auto index : group)
      if (whole && !states_.results[index]) whole = run_memory(index);
    const auto timed = to_be_timed(group);
    for (std::int64_t round = 0; whole && round < plan_.request.repetitions; ++round)
      whole = run_round(timed, round);
    for (const auto index : timed)
      if (states_.results[index]->status == records::Status::kOk) book_.show(index);
    if (!timed.empty()) book_.save_now();
    return whole;
  }

  Cases to_be_timed(Cases group) const {
    std::erase_if(group, [this](std::size_t index) {
      const auto& result = states_.results[index];
      return !result || !is_to_be_timed(*result, plan_.request);
    });
    return group;
  }

  bool run_memory(std::size_t index) {
    const auto& planned = plan_.cases[index];
    if (planned.decided) {
      book_.take_memory(index, decided_case(planned));
    } else {
      if (interrupted()) return false;
      listener_.worker_started(turn(index, records::JobMode::kMemory));
      auto found = measure_memory(book_.memory_orders({index}).front(), runner_, listener(index));
      listener_.worker_ended(book_.place(index));
      if (!found) return false;
      book_.take_memory(index, std::move(*found));
    }
    memory_is_known(index);
    return true;
  }

  void memory_is_known(std::size_t index) {
    const auto& result = book_.result(index);
    const bool over = !is_to_be_timed(result, plan_.request) ||
                      missing_rounds(result, plan_.request.repetitions).empty();
    if (over) {
      book_.is_over(index);
      book_.show(index);
    }
    book_.save();
  }

  // The memory workers of cases on several real cards: one at a time on each card, and the cards
  // beside each other. Nothing is timed meanwhile.
  bool run_cards(const std::vector<Cases>& groups) {
    std::vector<Lane> lanes;
    if (jobs_ > 1) lanes = lanes_of(groups);
    if (lanes.size() < 2) return true;
    bool whole = true;
    measure(lanes, [&](std::size_t index, std::optional<records::CaseResult> found) {
      whole = whole && found;
      if (!found) return;
      book_.take_memory(index, std::move(*found));
      memory_is_known(index);
    });
    return whole && !interrupted();
  }

  // Of each card that is not emulated, what is to be measured there, in order.
  std::vector<Lane> lanes_of(const std::vector<Cases>& groups) const {
    std::vector<Lane> lanes;
    std::map<std::string, std::size_t> lane_of;
    for (const auto index : joined(groups)) {
      const auto& planned = plan_.cases[index];
      const auto device = records::recorded_device(planned.spec.device);
      if (planned.decided || states_.results[index] || !device.is_card) continue;
      const auto [found, is_new] = lane_of.try_emplace(device.space, lanes.size());
      if (is_new) lanes.emplace_back();
      lanes[found->second].push_back(index);
    }
    return lanes;
  }

  bool run_round(const Cases& timed, std::int64_t round) {
    const auto order = round_order(timed.size(), round);
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto index = timed[order[place]];
      auto& result = book_.result(index);
      const auto missing = missing_rounds(result, plan_.request.repetitions);
      if (states_.pending.count(index) == 0 || std::ranges::find(missing, round) == missing.end())
        continue;
      if (interrupted()) return false;
      auto at = turn(index, records::JobMode::kThroughput);
      at.round = round;
      at.group_size = timed.size();
      listener_.worker_started(at);
      const auto end = measure_round(book_.order(index), {round, static_cast<std::int64_t>(place)},
                                     runner_, listener(index), result);
      listener_.worker_ended(book_.place(index));
      if (end == RoundEnd::kInterrupted) return false;
      if (end == RoundEnd::kOver || missing.size() == 1) book_.is_over(index);
      if (result.status != records::Status::kOk) book_.show(index);
      book_.save();
    }
    return true;
  }

  // Cases of which nothing is timed.
  bool run_together(Cases all) {
    std::erase_if(all, [this](std::size_t index) { return states_.results[index].has_value(); });
    std::vector<Lane> lanes;
    for (const auto index : all)
      if (plan_.cases[index].decided)
        take_ended(index, decided_case(plan_.cases[index]));
      else
        lanes.push_back({index});
    std::size_t shown = 0;
    const auto show_in_order = [&] {
      for (; shown < all.size() && states_.results[all[shown]]; ++shown) book_.show(all[shown]);
      book_.save();
    };
    show_in_order();
    measure(lanes, [&](std::size_t index, std::optional<records::CaseResult> found) {
      if (!found) return;
      take_ended(index, std::move(*found));
      show_in_order();
    });
    // Of an interrupted run: those that others before them kept from being shown.
    for (; shown < all.size(); ++shown)
      if (states_.results[all[shown]]) book_.show(all[shown]);
    book_.save_now();
    return std::ranges::all_of(
        all, [this](std::size_t index) { return states_.results[index].has_value(); });
  }

  // Takes the orders of all at once: none of these cases is checked against another.
  template <typename Ended>
  void measure(const std::vector<Lane>& lanes, const Ended& one_ended) {
    const auto cases = joined(lanes);
    const auto orders = book_.memory_orders(cases);
    std::map<std::size_t, const CaseOrder*> order_of;
    for (std::size_t i = 0; i < cases.size(); ++i) order_of[cases[i]] = &orders[i];
    std::vector<std::optional<records::CaseResult>> found(plan_.cases.size());
    const Work work = [&](std::size_t index, const Listener& listener) {
      found[index] = measure_memory(*order_of.at(index), runner_, listener);
    };
    run_in_lanes(lanes, jobs_, work,
                 {[this](std::size_t index) {
                    listener_.worker_started(turn(index, records::JobMode::kMemory));
                  },
                  [this](std::size_t index, const records::Progress& at) {
                    listener_.worker_progress(book_.place(index), at);
                  },
                  [this](const std::string& text) { listener_.warning(text); },
                  [&](std::size_t index) {
                    listener_.worker_ended(book_.place(index));
                    one_ended(index, std::move(found[index]));
                  },
                  [this] { tick(); }});
  }

  void take_ended(std::size_t index, records::CaseResult found) {
    book_.take_memory(index, std::move(found));
    book_.is_over(index);
  }

  Turn turn(std::size_t index, records::JobMode mode) const {
    auto turn = turn_of(plan_, states_, index, mode);
    turn.place = book_.place(index);
    return turn;
  }

  Listener listener(std::size_t index) {
    const auto place = book_.place(index);
    return {[this, place](const records::Progress& at) { listener_.worker_progress(place, at); },
            [this] { tick(); }, [this](const std::string& text) { listener_.warning(text); }};
  }

  void tick() {
    listener_.tick();
    book_.tick();
  }

  const planning::Plan& plan_;
  const std::size_t jobs_;
  Runner& runner_;
  RunListener& listener_;
  RunBook& book_;
  const CaseStates& states_;
};

}  // namespace

bool nothing_to_run(const planning::Plan& plan) {
  return std::ranges::all_of(
      plan.cases, [](const planning::PlannedCase& planned) { return planned.decided.has_value(); });
}

records::Run run_plan(const planning::Plan& plan, const RunFolder& folder,
                      const SessionOptions& options, Runner& runner, RunListener& listener) {
  auto run = open_run(plan, folder, options);
  auto states = take_over(plan, run);
  for (const auto& words : words_on_outdated(states)) listener.warning(words);
  const auto groups = pending_groups(plan, states);
  RunBook book(plan, {folder, options.case_directory}, std::move(run), std::move(states),
               joined(groups), options.parameters, listener);
  book.begin();
  Session(plan, options.jobs, runner, listener, book).go(groups);
  return book.end();
}

}  // namespace peakbench::launch
