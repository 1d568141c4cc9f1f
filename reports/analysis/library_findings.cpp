#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "reports/analysis/findings.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
// What is known of functions of PyTorch's that a call stack goes through.

namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;
using trace::ScopeKind;

// Of each stack, the outermost frame in a file of a library (and in a function of it); kNone where
// it has none.
class Through {
 public:
  Through(const trace::Trace& trace, std::string_view file, std::string_view function = "") {
    for (std::size_t i = 0; i < trace.frames.size(); ++i) {
      const auto& frame = trace.frames[i];
      const auto outer =
          frame.parent == trace::kNone ? trace::kNone : at_[static_cast<std::size_t>(frame.parent)];
      const bool is_it =
          trace::word_at(trace.files, frame.file).ends_with(file) &&
          (function.empty() || trace::word_at(trace.functions, frame.function) == function);
      at_.push_back(outer == trace::kNone && is_it ? static_cast<std::int32_t>(i) : outer);
    }
  }
  std::int32_t frame_of(std::int32_t stack) const {
    return stack == trace::kNone ? trace::kNone : at_[static_cast<std::size_t>(stack)];
  }

 private:
  std::vector<std::int32_t> at_;
};

// As far as activation checkpointing goes.
constexpr const char* kCheckpointFile = "torch/utils/checkpoint.py";

}  // namespace

std::vector<Finding> find_loaded(const Program& program) {
  if (program.steps.count() == 0) return {};
  const Through loads(program.trace, "torch/serialization.py", "load");
  const auto sizes = sizes_of_state(program);
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes) {
    const auto& event = event_of(program, lifetime);
    const bool counts = lifetime.category == Category::kKept && is_own(program, lifetime) &&
                        is_at_peak(program, lifetime) && sizes.contains(event.requested_bytes);
    if (counts && loads.frame_of(event.stack) != trace::kNone) found.add(lifetime);
  }
  return of_all_lines(program, FindingKind::kLoaded, found, kLeastShareOfCopies,
                      {"a checkpoint that torch.load read, beside the parameters and states",
                       "torch.load(..., map_location=\"cpu\"), or `del` it after "
                       "load_state_dict()"});
}

// Checkpointing without any use.

namespace {

std::size_t recomputations_of(const trace::Trace& trace) {
  return static_cast<std::size_t>(std::ranges::count_if(trace.scopes, [](const auto& mark) {
    return mark.kind == ScopeKind::kRecomputation && !mark.ends;
  }));
}

// The line of the program that calls checkpoint(), as it follows "at"; nullopt: none did, or not in
// a step that ended.
std::optional<trace::SourceLine> line_of_checkpoint(const Program& program,
                                                    std::string_view function) {
  const Through checkpoint(program.trace, kCheckpointFile, function);
  for (const auto& event : program.trace.events) {
    const auto step = program.steps.index_of(event.step);
    const auto frame = checkpoint.frame_of(event.stack);
    const bool in_call = event.kind == trace::EventKind::kAlloc && step &&
                         *step + 1 < program.steps.count() &&
                         (event.phase == Phase::kForward || event.phase == Phase::kEvaluation);
    if (in_call && frame != trace::kNone)
      return trace::own_line(program.trace,
                             program.trace.frames[static_cast<std::size_t>(frame)].parent);
  }
  return std::nullopt;
}

bool has_backward(const trace::Trace& trace) {
  return std::ranges::any_of(
      trace.events, [](const trace::Event& event) { return event.phase == Phase::kBackward; });
}

bool recomputes(const Program& program) {
  return std::ranges::any_of(program.lifetimes, [&](const Lifetime& lifetime) {
    return lifetime.category == Category::kRecomputedActivation &&
           event_of(program, lifetime).requested_bytes > 0;
  });
}

}  // namespace

std::vector<Finding> find_checkpointing(const Program& program) {
  if (!has_backward(program.trace)) return {};
  const auto count = recomputations_of(program.trace);
  if (count > 0 && recomputes(program)) return {};
  // Its function of autograd, with use_reentrant=True, has a forward.
  const auto line = line_of_checkpoint(program, count == 0 ? "forward" : "checkpoint");
  if (!line) return {};
  Finding finding{FindingKind::kCheckpointing, "", 0, 0, *line};
  const auto at = program.names.in_words(*line);
  finding.sentence =
      count == 0 ? fmt::format(
                       "No backward reaches what is checkpointed at {}: with use_reentrant=True "
                       "and no input that requires a gradient, no parameter in there gets one. "
                       "Pass use_reentrant=False (transformers: gradient_checkpointing_enable("
                       "gradient_checkpointing_kwargs={{\"use_reentrant\": False}})).",
                       at)
                 : fmt::format(
                       "Checkpointing at {} saves nothing: running the blocks again made no tensor "
                       "that backward needs. Checkpoint larger blocks: a linear layer alone saves "
                       "only its input.",
                       at);
  return {finding};
}

// Attention that stores its scores.

std::vector<Finding> find_attention(const Program& program) {
  // Made by _scaled_dot_product_attention_math alone, or by its _safe_softmax.
  std::map<std::int32_t, std::set<std::string>> operators;  // by stack
  for (const auto& event : program.trace.events)
    if (event.kind == trace::EventKind::kAlloc && event.op != trace::kNone)
      operators[event.stack].insert(trace::word_at(program.trace.operators, event.op));
  const auto is_math = [&](std::int32_t stack) {
    const auto& ran = operators[stack];
    return ran.contains("aten::_scaled_dot_product_attention_math") ||
           (ran.contains("aten::bmm") && ran.contains("aten::_softmax") &&
            ran.contains("aten::isneginf"));
  };
  ByLine found(program);
  for (const auto& lifetime : program.lifetimes)
    if (is_own(program, lifetime) && is_at_peak(program, lifetime) &&
        lifetime.category != Category::kWorkspace && is_math(event_of(program, lifetime).stack))
      found.add(lifetime);
  return of_all_lines(
      program, FindingKind::kAttention, found, kLeastShareOfCopies,
      {"memory of attention's math kernel, which stores the score of every pair of tokens",
       "a fused kernel does not: `with torch.nn.attention.sdpa_kernel("
       "torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):` takes one, or prints why it cannot"});
}

// CUDA graphs that each have a pool.

namespace {

// Reserved by pools of graphs at one time.
struct PoolsTogether {
  std::size_t count = 0;
  std::int64_t all = 0, largest = 0;
};

PoolsTogether sum_of(const std::map<std::int32_t, std::int64_t>& reserved) {
  PoolsTogether sum;
  for (const auto& [pool, bytes] : reserved) {
    if (bytes <= 0) continue;
    ++sum.count;
    sum.all += bytes;
    sum.largest = std::max(sum.largest, bytes);
  }
  return sum;
}

}  // namespace

std::vector<Finding> find_pools(const Program& program) {
  std::map<std::int32_t, std::int64_t> now;  // reserved, by pool
  PoolsTogether most;                        // when one pool for all would save most
  for (const auto& event : program.trace.events) {
    if (event.pool == trace::kNone || event.space != program.trace.own_space) continue;
    now[event.pool] += trace::reserved_change(event);
    const auto sum = sum_of(now);
    if (sum.all - sum.largest > most.all - most.largest) most = sum;
  }
  const auto captures = std::ranges::count_if(program.trace.scopes, [](const auto& mark) {
    return mark.kind == ScopeKind::kCapture && !mark.ends;
  });
  const auto [count, all, largest] = most;
  const auto more = all - largest;
  if (count < 2 || std::cmp_less(captures, count) || more < least(program, kLeastShareOfCopies))
    return {};
  Finding finding{FindingKind::kPools, "", more, 0, {}};
  finding.sentence = fmt::format(
      "{} CUDA graphs have pools of their own, which reserve {}; the largest reserves {}. If they "
      "are replayed one after another, capture all in one pool, the largest first: "
      "torch.cuda.graph(graph, pool=first.pool()).",
      count, in_words(all), in_words(largest));
  return {finding};
}

}  // namespace peakbench::analysis
