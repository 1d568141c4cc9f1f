#include "search/propose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "base/errors.h"
#include "base/numbers.h"
#include "launch/interrupt.h"
#include "launch/thread_pool.h"
#include "records/device.h"

namespace peakbench::search {
namespace {

using records::kBaseline;
constexpr const char* kDifferentProblem = "different_problem";
constexpr const char* kBitIdentical = "bit_identical";
constexpr const char* kAdapters = "adapters";  // a slot
constexpr std::int64_t kWorthAHundredth = 100;
// Most take as long as the baseline; those that compute on the host more.
constexpr std::int64_t kMostTimesTheBaseline = 5, kLeastPatience_s = 5;

using Parts = std::vector<std::string>;

std::string text_of(const Parts& parts) { return fmt::format("{}", fmt::join(parts, "+")); }

class Proposing {
 public:
  Proposing(const std::vector<Candidate>& candidates, const ProbeStack& probe)
      : candidates_(candidates), probe_(probe) {}

  Proposal go() {
    proposal_.stacks = {kBaseline};
    const auto baseline = probe_("");
    if (!baseline.runs) {
      for (const auto& one : candidates_)
        proposal_.left_out.push_back(
            {one.id, fmt::format("the baseline does not run: {}", baseline.why_not)});
      return std::move(proposal_);
    }
    look_at_each(baseline);
    const auto identical = extended({{}, baseline}, [](const Known& one) {
      return one.promise == kBitIdentical && !one.is_on_host;
    });
    const auto is_equal = [](const Known& one) {
      return one.promise != kDifferentProblem && !one.is_on_host;
    };
    const auto equal = extended(identical, is_equal);
    extended(equal, [](const Known& one) { return one.promise != kDifferentProblem; });
    extended(equal, [&](const Known& one) {
      return is_equal(one) ||
             (one.promise == kDifferentProblem && !one.with_adapters && !one.is_on_host);
    });
    extended(equal, [&](const Known& one) { return is_equal(one) || one.with_adapters; });
    say_what_is_in_none();
    return std::move(proposal_);
  }

 private:
  struct Known : Candidate {
    Probe probe;
    std::string reason = {};  // why it is in no stack, so far
    WhyLeftOut why = WhyLeftOut::kRuledOut;
    bool is_promising = false;  // it saved something alone
    bool is_used = false;
    bool is_on_host = false;  // worth a word: counters are there, too
  };
  struct Stack {
    Parts parts;
    Probe probe;
  };

  bool is_worth(std::int64_t before, std::int64_t now) const {
    return before - now >= worth_bytes_;
  }
  // Which part of a step holds the peak changes with the stack: what lowers another part may count
  // later.
  bool lowers_anything(const Probe& before, const Probe& now) const {
    if (is_worth(before.bytes, now.bytes)) return true;
    if (is_worth(now.bytes, before.bytes)) return false;
    return std::ranges::any_of(before.phases, [&](const auto& phase) {
      const auto found = now.phases.find(phase.first);
      return is_worth(phase.second, found == now.phases.end() ? 0 : found->second);
    });
  }

  void look_at_each(const Probe& baseline) {
    worth_bytes_ = baseline.bytes / kWorthAHundredth;
    for (const auto& one : candidates_) {
      Known known;
      static_cast<Candidate&>(known) = one;
      known.probe = probe_(one.id);
      if (!known.probe.runs) {
        known.reason = known.probe.why_not;
        if (known.probe.is_slow) known.why = WhyLeftOut::kTooSlow;
      } else if (!lowers_anything(baseline, known.probe)) {
        known.why = WhyLeftOut::kSavesNothing;
        known.reason = fmt::format("saves nothing worth it here: peak {}, the baseline's {}",
                                   gib_text(known.probe.bytes), gib_text(baseline.bytes));
      }
      known.is_on_host = known.probe.host_bytes >= std::max<std::int64_t>(worth_bytes_, 1);
      if (known.reason.empty() && known.is_on_host && known.promise == kDifferentProblem)
        known.reason = "it trains another problem and keeps some of it in host memory";
      known_.push_back(std::move(known));
    }
    // Of those as good as equal at the peak, the one that lowers more beside it.
    std::ranges::stable_sort(known_, {}, [this](const Known& one) {
      std::int64_t phases = 0;
      for (const auto& [name, bytes] : one.probe.phases) phases += bytes;
      return std::tuple(!one.probe.runs, one.probe.bytes / std::max<std::int64_t>(worth_bytes_, 1),
                        phases);
    });
  }

  // What does not run alone may do so beside others.
  static bool is_worth_trying(const Known& one) {
    return one.probe.runs ? one.why != WhyLeftOut::kSavesNothing || one.is_promising
                          : one.why == WhyLeftOut::kRuledOut;
  }

  // A new stack, where anything makes it worth it.
  template <class IsOfLevel>
  Stack extended(const Stack& from, const IsOfLevel& is_of_level) {
    auto stack = from;
    for (auto& one : known_)
      if (is_worth_trying(one) && is_of_level(one) &&
          std::ranges::find(stack.parts, one.id) == stack.parts.end())
        add(one, stack);
    take_out_what_is_idle(from, stack);
    if (stack.parts.size() == from.parts.size()) return from;
    for (auto& one : known_)
      if (std::ranges::find(stack.parts, one.id) != stack.parts.end()) one.is_used = true;
    proposal_.stacks.push_back(text_of(stack.parts));
    return stack;
  }

  void add(Known& one, Stack& stack) {
    auto longer = stack.parts;
    longer.push_back(one.id);
    auto found = probe_(text_of(longer));
    if (!found.runs) {
      one.reason = found.why_not;
      if (found.is_slow) one.why = WhyLeftOut::kTooSlow;
    } else if (lowers_anything(stack.probe, found)) {
      stack = {std::move(longer), std::move(found)};
    } else {
      say_it_saves_nothing(one, stack.parts, found, stack.probe);
    }
  }

  // Those that came last first.
  void take_out_what_is_idle(const Stack& from, Stack& stack) {
    for (std::size_t i = stack.parts.size(); i-- > from.parts.size();) {
      auto shorter = stack.parts;
      shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(i));
      const auto without = shorter.empty() ? probe_("") : probe_(text_of(shorter));
      if (!without.runs || is_worth(without.bytes, stack.probe.bytes)) continue;
      const auto one = std::ranges::find(known_, stack.parts[i], &Known::id);
      say_it_saves_nothing(*one, shorter, stack.probe, without);
      stack = {std::move(shorter), without};
    }
  }

  static void say_it_saves_nothing(Known& one, const Parts& beside, const Probe& with,
                                   const Probe& without) {
    one.why = WhyLeftOut::kSavesNothing;
    one.is_promising = true;
    one.reason = fmt::format("beside {} it saves nothing worth it: peak {} with it, {} without",
                             beside.empty() ? kBaseline : text_of(beside), gib_text(with.bytes),
                             gib_text(without.bytes));
  }

  void say_what_is_in_none() {
    for (const auto& one : known_)
      if (!one.is_used) proposal_.left_out.push_back({one.id, one.reason, one.why});
  }

  const std::vector<Candidate>& candidates_;
  const ProbeStack& probe_;
  std::int64_t worth_bytes_ = 0;
  std::vector<Known> known_;
  Proposal proposal_;
};

// One case of a request, of the first model, card and length.
class ProbedRequest {
 public:
  ProbedRequest(const planning::Request& request, Along along, const planning::Build& build,
                const TrialRunner& trials, const std::function<void(const std::string&)>& said)
      : request_(request),
        along_(along == Along::kRank ? Along::kNothing : along),
        build_(build),
        trials_(trials),
        said_(said) {
    for (auto& [axis, list] : request_.lists)
      if (list.size() > 1) list.resize(1);
  }

  // The size that the baseline just does not fit; and how long one run of it takes.
  void find_size() {
    const auto cell = cell_of("");
    const auto answer = search_cell(
        cell, {.beside = 1, .least_memory = false, .only_what_fits = true},
        [this](const planning::PlannedCase& planned) { return trials_.run(planned, {}); },
        [this](const Trial& trial) {
          said_(
              fmt::format("looking for the size that the baseline does not fit: {}", trial.value));
        });
    value_ = answer.failed_value.value_or(answer.value.value_or(cell.limits.first));
    const auto card = records::card_text(records::device_from(cell.planned.spec.device));
    const auto where =
        along_ == Along::kNothing ? "" : fmt::format("{} {} on ", label_of(along_), value_);
    measured_at_ = where + card + ", without a limit";
    const auto start = std::chrono::steady_clock::now();
    probe("");
    const auto took =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    patience_s_ = std::clamp<std::int64_t>(kMostTimesTheBaseline * took.count(), kLeastPatience_s,
                                           request_.timeout_s);
  }
  const std::string& measured_at() const { return measured_at_; }

  Probe probe(const std::string& stack) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(stack); known != known_.end()) return known->second;
    }
    const auto found = measured(stack);
    const std::lock_guard lock(mutex_);
    said_(fmt::format("proposing stacks: {}: {}", stack.empty() ? kBaseline : stack,
                      found.runs ? gib_text(found.bytes) : found.why_not));
    return known_[stack] = found;
  }

 private:
  Cell cell_of(const std::string& stack) {
    auto request = request_;
    request.lists[records::Axis::kStrategy] = {stack.empty() ? kBaseline : stack};
    return cells_of(planning::make_plan(request, {&build_, 1}), along_, build_.plugins).front();
  }

  Probe measured(const std::string& stack) {
    Probe probe;
    try {
      const auto cell = cell_of(stack);
      probe.why_not = cell.not_run;
      if (probe.why_not.empty() && along_ == Along::kBatch && cell.limits.first > 1)
        probe.why_not = "it splits the batch, whose largest size is searched";
      if (!probe.why_not.empty()) return probe;
      const auto found =
          trials_.run(with_memory(cell.with_value(value_), kNoLimitBytes), {}, patience_s_);
      if (!found) {
        probe.why_not = "interrupted";
      } else if (found->status == records::Status::kTimeout && patience_s_) {
        probe.is_slow = true;
        probe.why_not = fmt::format("one run takes more than {} s here", *patience_s_);
      } else if (found->status != records::Status::kOk) {
        probe.why_not = fmt::format("ended {}: {}", to_string(found->status), found->reason);
      } else {
        probe.runs = true;
        const auto& memory = *found->memory;
        probe.bytes = memory.replays_steps ? memory.peak_reserved_bytes.value_or(0)
                                           : memory.peak_allocated_bytes;
        for (const auto& [name, phase] : memory.phases)
          if (name != "build") probe.phases[name] = phase.peak_allocated_bytes;
        if (const auto pinned = found->memory->spaces.find("pinned");
            pinned != found->memory->spaces.end())
          probe.host_bytes = pinned->second.peak_allocated_bytes;
      }
    } catch (const ConfigError& error) {  // an option without which it is nothing
      probe.why_not = error.what();
    }
    return probe;
  }

  planning::Request request_;
  const Along along_;
  const planning::Build& build_;
  const TrialRunner& trials_;
  const std::function<void(const std::string&)>& said_;
  std::int64_t value_ = 1;
  std::optional<std::int64_t> patience_s_;  // with one run
  std::string measured_at_;
  std::mutex mutex_;
  std::map<std::string, Probe> known_;
};

bool has_adapters(const planning::Entry& entry) {
  return std::ranges::count(entry.slots, kAdapters) +
             std::ranges::count(entry.requires_slots, kAdapters) >
         0;
}

std::vector<Candidate> candidates_in(const planning::Found& plugins) {
  std::vector<Candidate> candidates;
  for (const auto& plugin : plugins.plugins)
    for (const auto& entry : plugin.entries)
      if (plugin.kind == planning::Kind::kStrategy && entry.id != kBaseline)
        candidates.push_back({entry.id, entry.promise, has_adapters(entry)});
  return candidates;
}

}  // namespace

Proposal propose(const std::vector<Candidate>& candidates, const ProbeStack& probe) {
  return Proposing(candidates, probe).go();
}

Proposal propose_for(const planning::Request& request, Along along, const planning::Build& build,
                     const TrialRunner& trials, std::size_t jobs,
                     const std::function<void(const std::string&)>& said) {
  ProbedRequest probed(request, along, build, trials, said);
  probed.find_size();
  const auto candidates = candidates_in(build.plugins);
  // Each alone, several at a time; what is stacked rests on what was found before.
  launch::run_each(candidates.size(), jobs,
                   [&](std::size_t i, const launch::Listener&) { probed.probe(candidates[i].id); },
                   {});
  auto proposal =
      propose(candidates, [&](const std::string& stack) { return probed.probe(stack); });
  proposal.measured_at = probed.measured_at();
  proposal.interrupted = launch::interrupted();
  return proposal;
}

}  // namespace peakbench::search
