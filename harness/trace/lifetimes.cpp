#include "trace/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/errors.h"

namespace peakbench::trace {

// The field's own words for what a trace holds; the same in SQLite, JSON, reports and docs.

const char* to_string(Category category) {
  static constexpr std::array<const char*, kCategoryCount> kWords = {"parameter",
                                                                     "buffer",
                                                                     "gradient",
                                                                     "optimizer_state",
                                                                     "input",
                                                                     "activation",
                                                                     "recomputed_activation",
                                                                     "temporary",
                                                                     "workspace",
                                                                     "communication",
                                                                     "graph_pool",
                                                                     "kept",
                                                                     "allocator_slack"};
  return kWords.at(static_cast<std::size_t>(category));
}

const char* to_string(Phase phase) {
  static constexpr std::array<const char*, kPhaseCount> kWords = {
      "build", "forward",    "backward",   "optimizer_step",
      "data",  "evaluation", "generation", "checkpoint"};
  return kWords.at(static_cast<std::size_t>(phase));
}

const char* to_string(EventKind kind) {
  static constexpr std::array<const char*, kEventKindCount> kWords = {
      "alloc",        "free",        "free_requested", "segment_alloc",
      "segment_free", "segment_map", "segment_unmap",  "out_of_memory"};
  return kWords.at(static_cast<std::size_t>(kind));
}

const char* to_string(ScopeKind kind) {
  static constexpr std::array<const char*, kScopeKindCount> kWords = {
      "phase",         "module",  "backward_node", "update",
      "recomputation", "capture", "larger_copy",   "frozen_copy"};
  return kWords.at(static_cast<std::size_t>(kind));
}

const char* to_string(Role role) { return to_string(category_of(role)); }

Category category_of(Role role) {
  static constexpr auto kCategories = std::to_array<Category>(
      {Category::kParameter, Category::kBuffer, Category::kGradient, Category::kOptimizerState,
       Category::kInput, Category::kWorkspace, Category::kKept, Category::kCommunication});
  static_assert(kCategories.size() == kRoleCount);
  return kCategories.at(static_cast<std::size_t>(role));
}

// Pairs every allocation with its free, and decides what it was.

namespace {

[[noreturn]] void fail(std::uint64_t event, const std::string& what) {
  throw TraceError(fmt::format("trace: event {}: {}", event, what));
}

struct Address {
  std::uint64_t address;
  std::int16_t space;
  bool operator==(const Address&) const = default;
};

struct AddressHash {
  std::size_t operator()(const Address& address) const {
    // Addresses are multiples of 64 or 512: mix the high bits down (Fibonacci hashing).
    const auto key = address.address ^ (static_cast<std::uint64_t>(address.space) << 56U);
    return (key * 0x9E3779B97F4A7C15ULL) >> 16U;
  }
};

bool known(std::int32_t index, std::size_t count) {
  return index == kNone || (index >= 0 && static_cast<std::size_t>(index) < count);
}

void check(const Trace& trace, std::uint64_t number) {
  const auto& event = trace.events[number];
  if (event.space < 0 || static_cast<std::size_t>(event.space) >= trace.spaces.size())
    fail(number, fmt::format("space {} of {}", event.space, trace.spaces.size()));
  if (!known(event.module, trace.modules.size()))
    fail(number, fmt::format("module {} of {}", event.module, trace.modules.size()));
  if (!known(event.op, trace.operators.size()))
    fail(number, fmt::format("operator {} of {}", event.op, trace.operators.size()));
}

// Pairs allocs and frees while the events go by.
class Pairing {
 public:
  explicit Pairing(const Trace& trace) : trace_(trace), end_(trace.events.size()) {}

  void take(std::uint64_t number) {
    const auto& event = trace_.events[number];
    check(trace_, number);
    if (event.address == 0) return;
    switch (event.kind) {
      case EventKind::kAlloc:
        return allocate(number, event);
      case EventKind::kFreeRequested:
        return free_requested(number, event);
      case EventKind::kFree:
        return free(number, event);
      default:
        return;
    }
  }

  std::vector<Lifetime> take_result() { return std::move(lifetimes_); }

 private:
  void allocate(std::uint64_t number, const Event& event) {
    if (event.requested_bytes < 0 || event.block_bytes < event.requested_bytes)
      fail(number, fmt::format("a block of {} bytes holds an allocation of {}", event.block_bytes,
                               event.requested_bytes));
    const auto [at, fresh] = alive_.try_emplace({event.address, event.space}, lifetimes_.size());
    if (!fresh)
      fail(number, fmt::format("address {:#x} in {} is allocated while the allocation of event {} "
                               "there is alive",
                               event.address, space(event), lifetimes_[at->second].first));
    lifetimes_.push_back({number, end_, end_});
  }

  void free_requested(std::uint64_t number, const Event& event) {
    auto& lifetime = lifetimes_[find(number, event)->second];
    if (lifetime.last != end_)
      fail(number, fmt::format("address {:#x} in {} was freed at event {} already", event.address,
                               space(event), lifetime.last));
    lifetime.last = number;
    check_size(number, event, lifetime);
  }

  void free(std::uint64_t number, const Event& event) {
    const auto at = find(number, event);
    auto& lifetime = lifetimes_[at->second];
    lifetime.last = std::min(lifetime.last, number);
    lifetime.released = number;
    check_size(number, event, lifetime);
    alive_.erase(at);
  }

  using Alive = std::unordered_map<Address, std::size_t, AddressHash>;

  Alive::iterator find(std::uint64_t number, const Event& event) {
    const auto at = alive_.find({event.address, event.space});
    if (at == alive_.end())
      fail(number, fmt::format("address {:#x} in {} is freed, and nothing is allocated there",
                               event.address, space(event)));
    return at;
  }

  void check_size(std::uint64_t number, const Event& event, const Lifetime& lifetime) const {
    const auto allocated = trace_.events[lifetime.first].block_bytes;
    if (event.block_bytes != 0 && event.block_bytes != allocated)
      fail(number,
           fmt::format("a block of {} bytes is freed at {:#x} in {}, where event {} allocated "
                       "one of {}",
                       event.block_bytes, event.address, space(event), lifetime.first, allocated));
  }

  const std::string& space(const Event& event) const {
    return trace_.spaces[static_cast<std::size_t>(event.space)];
  }

  const Trace& trace_;
  std::uint64_t end_;
  std::vector<Lifetime> lifetimes_;
  Alive alive_;
};

void bind_names(const Trace& trace, std::vector<Lifetime>& lifetimes) {
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    const auto& name = trace.names[i];
    const auto at = std::lower_bound(
        lifetimes.begin(), lifetimes.end(), name.event,
        [](const Lifetime& lifetime, std::uint64_t event) { return lifetime.first < event; });
    if (at == lifetimes.end() || at->first != name.event)
      fail(name.event, fmt::format("`{}` names it, and it is no allocation", name.name));
    if (at->name == kNone) at->name = static_cast<std::int32_t>(i);
  }
}

// Decides from lifetimes alone.
class Categories {
 public:
  explicit Categories(const Trace& trace) : trace_(trace), steps_begin_(trace.events.size()) {
    for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
      const auto& event = trace.events[i];
      if (i + 1 == trace.events.size() || trace.events[i + 1].phase != event.phase ||
          trace.events[i + 1].step != event.step)
        run_ends_.push_back(i);
      // A program's batch is made before its step begins, and what it lets go is gone by then.
      if (event.step != kNone && event.phase != Phase::kData) {
        steps_begin_ = std::min(steps_begin_, i);
        step_begins_.try_emplace(event.step, i);
      }
      if (event.in_recompute) recompute_end_[event.recompute] = i;
      if (event.kind == EventKind::kOutOfMemory) failure_ = i;
      if (event.kind == EventKind::kAlloc) failure_.reset();  // caught, and the step went on
    }
    note_captures();
  }

  // The first rule that applies decides (docs/explanation/categories.md has them in words).
  Category decide(const Lifetime& lifetime) const {
    const Allocation made{lifetime, trace_.events[lifetime.first], end_of_phase(lifetime.first)};
    for (const auto& rule : kRules)
      if ((this->*rule.applies)(made)) return rule.category;
    return Category::kTemporary;
  }

 private:
  struct Allocation {
    const Lifetime& lifetime;
    const Event& event;
    std::uint64_t phase_end;  // the last event of its phase

    bool is_in(Phase phase) const { return event.phase == phase; }
    bool is_in_call() const { return is_in(Phase::kEvaluation) || is_in(Phase::kGeneration); }
    bool outlives_phase() const { return lifetime.last > phase_end; }
  };

  bool is_in_graph(const Allocation& made) const { return is_of_graph(made.lifetime, made.event); }
  // What a program makes before it calls a model, and needs there.
  bool is_data(const Allocation& made) const {
    return made.is_in(Phase::kData) && made.outlives_phase();
  }
  bool is_kept_data(const Allocation& made) const {
    return is_data(made) && (made.lifetime.last == trace_.events.size() || outlives_step(made));
  }
  bool is_loss_of_evaluation(const Allocation& made) const {
    return is_data(made) && is_of_evaluation(made.lifetime);
  }
  bool is_of_build(const Allocation& made) const {
    return made.lifetime.first < steps_begin_ && made.lifetime.last >= steps_begin_;
  }
  bool outlives_step(const Allocation& made) const {
    return made.lifetime.last >= next_step_after(made.event.step);
  }
  bool outlives_recomputation(const Allocation& made) const {
    return is_recomputed(made) && made.lifetime.last > recompute_end_.at(made.event.recompute);
  }
  bool is_recomputed(const Allocation& made) const { return made.event.in_recompute; }
  bool outlives_forward(const Allocation& made) const {
    const bool in_forward = made.is_in(Phase::kForward) && made.event.step != kNone;
    return (in_forward || made.is_in(Phase::kEvaluation)) &&
           made.lifetime.last > end_of_forward(made.lifetime.first, made.phase_end);
  }
  // What a call leaves: its outputs, and the graph that was recorded for them.
  bool outlives_call(const Allocation& made) const {
    return made.is_in_call() && made.outlives_phase();
  }

  struct Rule {
    bool (Categories::*applies)(const Allocation&) const;
    Category category;
  };
  static constexpr auto kRules = std::to_array<Rule>({
      {&Categories::is_in_graph, Category::kGraphPool},
      {&Categories::is_kept_data, Category::kKept},
      {&Categories::is_loss_of_evaluation, Category::kActivation},
      {&Categories::is_data, Category::kInput},
      {&Categories::is_of_build, Category::kKept},
      {&Categories::outlives_step, Category::kKept},
      {&Categories::outlives_recomputation, Category::kRecomputedActivation},
      {&Categories::is_recomputed, Category::kTemporary},
      {&Categories::outlives_forward, Category::kActivation},
      {&Categories::outlives_call, Category::kActivation},
  });

  // Captures do not nest: CUDA has one at a time.
  void note_captures() {
    std::optional<std::uint64_t> begun;
    for (const auto& mark : trace_.scopes) {
      if (mark.kind != ScopeKind::kCapture) continue;
      if (begun && mark.ends) captures_.emplace(*begun, mark.event);
      begun = mark.ends ? std::nullopt : std::optional(mark.event);
    }
    if (begun) captures_.emplace(*begun, trace_.events.size());
  }

  // A graph replays into the blocks that it was captured with: what is alive then is its own.
  bool is_of_graph(const Lifetime& lifetime, const Event& event) const {
    if (event.pool == kNone || captures_.empty()) return false;
    const auto next = captures_.upper_bound(lifetime.first);
    if (next == captures_.begin()) return false;
    const auto end = std::prev(next)->second;
    return lifetime.first < end && lifetime.last >= end;
  }

  // The first event of the step after this one; never reached where there is none.
  std::uint64_t next_step_after(std::int32_t step) const {
    const auto next = step == kNone ? step_begins_.end() : step_begins_.upper_bound(step);
    return next == step_begins_.end() ? kNever : next->second;
  }

  // A forward that ran out of memory ended there: what follows is the unwinding.
  std::uint64_t end_of_forward(std::uint64_t event, std::uint64_t phase_end) const {
    return failure_ && event < *failure_ ? std::min(phase_end, *failure_) : phase_end;
  }

  // The run of events in one phase of one step that holds `event`: where it is in run_ends_.
  std::size_t run_of(std::uint64_t event) const {
    return static_cast<std::size_t>(std::lower_bound(run_ends_.begin(), run_ends_.end(), event) -
                                    run_ends_.begin());
  }
  std::uint64_t end_of_phase(std::uint64_t event) const { return run_ends_[run_of(event)]; }

  // Made behind a call of an evaluation or generation, and alive behind the next such call and what
  // follows it, where a batch for that call is gone.
  bool is_of_evaluation(const Lifetime& lifetime) const {
    const auto run = run_of(lifetime.first);
    const auto calls = [this](std::size_t at) {
      const auto phase = trace_.events[run_ends_[at]].phase;
      return phase == Phase::kEvaluation || phase == Phase::kGeneration;
    };
    const auto behind_next = std::min(run + 2, run_ends_.size() - 1);
    return run > 0 && calls(run - 1) && calls(std::min(run + 1, behind_next)) &&
           lifetime.last > run_ends_[behind_next];
  }

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const Trace& trace_;
  std::vector<std::uint64_t> run_ends_;                // the last event of each
  std::uint64_t steps_begin_;                          // the first event of a step
  std::map<std::int32_t, std::uint64_t> step_begins_;  // of each step
  std::optional<std::uint64_t> failure_;  // the event that ended the trace out of memory
  std::unordered_map<std::int32_t, std::uint64_t> recompute_end_;
  std::map<std::uint64_t, std::uint64_t> captures_;  // the events [begin, end) of each
};

// The last of a list that grows is let go when the program ends, as its last batch is; the last
// losses of an evaluation are when it returns. What was made at the same place before tells which
// it is.
void keep_what_was_kept_before(const Trace& trace, std::vector<Lifetime>& lifetimes) {
  std::int32_t last_step = kNone;
  for (const auto& event : trace.events) last_step = std::max(last_step, event.step);
  std::unordered_set<std::int32_t> keeping;                      // stacks
  std::unordered_map<std::int32_t, std::int32_t> left_by_calls;  // by stack: the step
  for (auto& lifetime : lifetimes) {
    const auto& event = trace.events[lifetime.first];
    if (event.phase != Phase::kData || event.stack == kNone || lifetime.name != kNone) continue;
    if (lifetime.category == Category::kKept) keeping.insert(event.stack);
    if (lifetime.category == Category::kActivation) left_by_calls[event.stack] = event.step;
    if (lifetime.category != Category::kInput) continue;
    const auto left = left_by_calls.find(event.stack);
    if (left != left_by_calls.end() && left->second == event.step)
      lifetime.category = Category::kActivation;
    else if (event.step == last_step && keeping.contains(event.stack))
      lifetime.category = Category::kKept;
  }
}

// Whether it is as large as two of these together, of which its own step made the later one.
bool is_as_large_as_two(const Trace& trace, const Event& event,
                        const std::vector<const Lifetime*>& parts) {
  for (std::size_t later = 1; later < parts.size(); ++later) {
    const auto& part = trace.events[parts[later]->first];
    if (part.step != event.step) continue;
    for (std::size_t i = 0; i < later; ++i)
      if (trace.events[parts[i]->first].requested_bytes + part.requested_bytes ==
          event.requested_bytes)
        return true;
  }
  return false;
}

// What gathers an evaluation's outputs (torch.cat) is as large as what it is made of: outputs of
// calls, or what was gathered before and an output. A batch is that by chance alone.
void note_gathered(const Trace& trace, std::vector<Lifetime>& lifetimes) {
  constexpr std::size_t kMostParts = 64;  // alive at once
  std::vector<const Lifetime*> parts;
  for (auto& lifetime : lifetimes) {
    const auto& event = trace.events[lifetime.first];
    std::erase_if(parts, [&](const Lifetime* part) { return part->last <= lifetime.first; });
    const bool is_gathered = event.phase == Phase::kData && lifetime.name == kNone &&
                             is_as_large_as_two(trace, event, parts);
    if (is_gathered && lifetime.category != Category::kKept)
      lifetime.category = Category::kActivation;
    const bool calls = event.phase == Phase::kEvaluation || event.phase == Phase::kGeneration;
    const bool is_output = calls && lifetime.category == Category::kActivation;
    if ((is_output || is_gathered) && parts.size() < kMostParts) parts.push_back(&lifetime);
  }
}

}  // namespace

std::vector<Lifetime> lifetimes(const Trace& trace) {
  Pairing pairing(trace);
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) pairing.take(i);
  auto found = pairing.take_result();
  bind_names(trace, found);
  Categories categories(trace);
  for (auto& lifetime : found)
    lifetime.category =
        lifetime.name == kNone
            ? categories.decide(lifetime)
            : category_of(trace.names[static_cast<std::size_t>(lifetime.name)].role);
  keep_what_was_kept_before(trace, found);
  note_gathered(trace, found);
  return found;
}

}  // namespace peakbench::trace
