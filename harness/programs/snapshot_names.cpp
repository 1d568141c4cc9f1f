#include "programs/snapshot_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "programs/snapshot_phases.h"
#include "trace/lines.h"

namespace peakbench::programs {
namespace {

using trace::EventKind;
using trace::Role;

using Counts = std::map<std::int64_t, std::size_t>;  // by requested bytes
using Line = std::pair<std::int32_t, std::int32_t>;  // file, line
constexpr Line kNoLine{trace::kNone, 0};

std::size_t count_of(const Counts& counts, std::int64_t bytes) {
  const auto found = counts.find(bytes);
  return found == counts.end() ? 0 : found->second;
}

bool in_any(const std::vector<EventSpan>& spans, std::uint64_t event) {
  return std::ranges::any_of(spans, [&](const EventSpan& span) { return span.contains(event); });
}

class Naming {
 public:
  Naming(const SnapshotWork& work, const OptimizerSpans& optimizers, trace::Trace& trace)
      : work_(work), optimizers_(optimizers), trace_(trace) {
    for (std::uint64_t i = 0; i < trace.events.size(); ++i)
      if (is_allocation(i)) allocations_.push_back(i);
  }

  void name_all() {
    name_workspaces();
    name_optimizer_states();
    find_candidates();
    name_gradients();
    name_parameters();
    keep_the_rest();
    keep_possible_workspaces();
    for (const auto& [event, role] : roles_) trace_.names.push_back({event, role, "", "", ""});
  }

 private:
  // Of bytes: one of none has no lifetime.
  bool is_allocation(std::uint64_t event) const {
    const auto& one = trace_.events[event];
    return one.kind == EventKind::kAlloc && one.address != 0;
  }
  std::int64_t bytes(std::uint64_t event) const { return trace_.events[event].requested_bytes; }
  bool is_kept_to_the_end(std::uint64_t event) const {
    return work_.freed[event] == trace_.events.size();
  }
  void name(std::uint64_t event, Role role) { roles_.try_emplace(event, role); }

  void name_workspaces() {
    for (const auto event : allocations_)
      if (trace_.events[event].op == kWorkspaceOperator) name(event, Role::kWorkspace);
  }

  void name_optimizer_states() {
    for (std::size_t i = 0; i < optimizers_.steps.size(); ++i) {
      const auto& step = optimizers_.steps[i];
      if (step.is_open) continue;  // its temporary memory is alive, too
      const auto next =
          i + 1 < optimizers_.steps.size() ? optimizers_.steps[i + 1].first : trace_.events.size();
      for (auto event = step.first; event < step.end; ++event)
        if (is_allocation(event) && work_.freed[event] >= next &&
            work_.facts(trace_.events[event]).made_by_optimizer)
          name(event, Role::kOptimizerState);
    }
  }

  // Of the last step(): what is alive then is no part of it.
  std::uint64_t last_end() const {
    if (optimizers_.steps.empty()) return 0;
    const auto& last = optimizers_.steps.back();
    return last.is_open ? last.first : last.end;
  }

  void find_candidates() {
    const auto backward = std::ranges::find(work_.spans, Work::kBackward, &WorkSpan::work);
    const auto end = backward == work_.spans.end() ? trace_.events.size() : backward->first;
    const auto first_call = work_.spans.empty() ? end : work_.spans.front().first;
    const auto last = last_end();
    for (const auto event : allocations_) {
      if (event >= end || work_.freed[event] < last || roles_.contains(event)) continue;
      if (in_any(optimizers_.steps, event)) continue;
      ++alike_[bytes(event)];
      if (event >= first_call) continue;
      candidates_.push_back(event);
      ++candidate_counts_[bytes(event)];
    }
  }

  bool is_of_engine(std::uint64_t event) const {
    return work_.works[event] == Work::kBackward &&
           trace_.events[event].stack == trace::kNone;  // of a hook: whatever it wants
  }

  void name_gradients() {
    std::vector<std::uint64_t> made;  // in backward
    auto at = allocations_.begin();
    for (const auto& step : optimizers_.steps) {
      for (; at != allocations_.end() && *at < step.first; ++at)
        if (work_.works[*at] == Work::kBackward) made.push_back(*at);
      std::erase_if(made, [&](std::uint64_t event) { return work_.freed[event] < step.end; });
      name_gradients_of_step(made);
    }
  }

  void name_gradients_of_step(const std::vector<std::uint64_t>& alive) {
    Counts counts;
    for (const auto event : alive)
      if (is_of_engine(event) || is_zeroed(event)) ++counts[bytes(event)];
    Counts named;
    for (const auto event : alive) {
      const auto size = bytes(event);
      const bool may_be =
          is_of_engine(event) && count_of(counts, size) <= count_of(candidate_counts_, size);
      if (!may_be && !is_zeroed(event)) continue;
      name(event, Role::kGradient);
      ++named[size];
    }
    for (const auto& [size, count] : named)
      gradient_counts_[size] = std::max(gradient_counts_[size], count);
  }

  bool is_zeroed(std::uint64_t event) const {
    return in_any(optimizers_.zero_grads, work_.freed[event]);
  }

  // Where torch.nn makes memory: of Module.to(), where it converts a parameter or a buffer.
  Line maker(std::uint64_t event) const {
    auto frame = trace_.events[event].stack;
    while (frame != trace::kNone) {
      const auto& one = trace_.frames[static_cast<std::size_t>(frame)];
      if (one.file == trace::kNone || one.function == trace::kNone) break;
      const auto& file = trace_.files[static_cast<std::size_t>(one.file)];
      const auto& function = trace_.functions[static_cast<std::size_t>(one.function)];
      const bool is_in_nn = file.find("/torch/nn/") != std::string::npos;
      const bool converts = file.ends_with("/torch/nn/modules/module.py") && function != "_apply";
      if (is_in_nn && !converts) return {one.file, one.line};
      if (!trace::is_pytorch_file(file)) break;  // torch.device as a context is between
      frame = one.parent;
    }
    return kNoLine;
  }

  // The line that makes exactly as many of each size as there are gradients, if it is one line.
  std::set<Line> makers_of_all() const {
    std::map<Line, Counts> made;
    for (const auto event : candidates_) ++made[maker(event)][bytes(event)];
    made.erase(kNoLine);
    std::erase_if(made, [&](const auto& one) { return one.second != gradient_counts_; });
    return made.size() == 1 ? std::set{made.begin()->first} : std::set<Line>();
  }

  void name_parameters() {
    auto makers = makers_of_all();
    const auto is_told_by_size = [&](std::uint64_t event) {
      const auto count = count_of(gradient_counts_, bytes(event));
      return count > 0 && count == count_of(alike_, bytes(event));
    };
    for (const auto event : candidates_)
      if (is_told_by_size(event)) {
        name(event, Role::kParameter);
        makers.insert(maker(event));
      }
    makers.erase(kNoLine);
    for (const auto event : candidates_)
      if (makers.contains(maker(event))) name(event, Role::kParameter);
  }

  // What is alive at the end, though its step has ended, was kept by the program, unless what the
  // same line made before was let go.
  void keep_the_rest() {
    const auto last = last_end();
    std::set<std::pair<std::int32_t, std::int64_t>> let_go;  // stack, bytes
    for (const auto event : allocations_)
      if (!is_kept_to_the_end(event)) let_go.insert({trace_.events[event].stack, bytes(event)});
    for (const auto event : allocations_) {
      const auto stack = trace_.events[event].stack;
      const bool is_like_others = stack != trace::kNone && let_go.contains({stack, bytes(event)});
      if (event < last && is_kept_to_the_end(event) && !is_like_others) name(event, Role::kKept);
    }
  }

  // Without frames of C++, a workspace is what else its operator makes. A handle makes it once, in
  // each thread, and keeps it. Sizes of cublas (before Hopper, on it) and cublasLt:
  // aten/src/ATen/cuda/CublasHandlePool.cpp.
  void keep_possible_workspaces() {
    constexpr std::int64_t kKiB = 1024;
    constexpr std::array<std::int64_t, 3> kSizes = {8320 * kKiB, 32768 * kKiB, 1024 * kKiB};
    if (std::ranges::any_of(allocations_, [&](std::uint64_t event) {
          return trace_.events[event].op == kWorkspaceOperator;
        }))
      return;
    std::set<std::pair<Work, std::int64_t>> found;
    for (const auto event : allocations_)
      if (work_.works[event] != Work::kUnknown && is_kept_to_the_end(event) &&
          std::ranges::count(kSizes, bytes(event)) > 0 && !roles_.contains(event) &&
          found.insert({work_.works[event], bytes(event)}).second)
        name(event, Role::kKept);
  }

  const SnapshotWork& work_;
  const OptimizerSpans& optimizers_;
  trace::Trace& trace_;
  std::vector<std::uint64_t> allocations_, candidates_;
  Counts candidate_counts_, gradient_counts_;
  Counts alike_;  // all that was alive as the candidates were
  std::map<std::uint64_t, Role> roles_;
};

}  // namespace

void name_snapshot_memory(const SnapshotWork& work, const OptimizerSpans& optimizers,
                          trace::Trace& trace) {
  Naming(work, optimizers, trace).name_all();
}

}  // namespace peakbench::programs
