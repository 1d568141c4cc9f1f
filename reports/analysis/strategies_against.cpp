#include "reports/analysis/strategies_against.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "reports/analysis/findings.h"
#include "trace/maxima.h"

namespace peakbench::analysis {

Against strategies_against(trace::Category category, trace::Phase phase) {
  using trace::Category;
  switch (category) {
    case Category::kParameter:
      return {"parameters", {"qlora"}};
    case Category::kGradient:
      return {"gradients", {"fused-in-backward", "gradient-offload", "galore", "lora", "freeze"}};
    case Category::kOptimizerState:
      return {"optimizer_state",
              {"adamw-8bit", "adamw-4bit", "adafactor", "paged", "optimizer-offload", "lora"}};
    case Category::kActivation:
      return {"activations",
              {"checkpointing", "accumulation", "autocast", "attention", "linear-cross-entropy",
               "chunked-cross-entropy", "activation-offload"}};
    case Category::kTemporary:  // of an update over all parameters at a time
      if (phase == trace::Phase::kOptimizerStep)
        return {"optimizer_state", {"fused-optimizer", "foreach-off", "fused-in-backward"}};
      return {};
    default:
      return {};
  }
}

std::vector<std::pair<std::string, std::int64_t>> parts_by_size(const records::Memory& memory) {
  std::vector<std::pair<std::string, std::int64_t>> parts(memory.at_peak.begin(),
                                                          memory.at_peak.end());
  std::ranges::stable_sort(parts, [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

namespace {

// nullopt: a word that this version does not know.
template <class Enum>
std::optional<Enum> from_word(const std::string& word, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (word == trace::to_string(static_cast<Enum>(i))) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> strategies_to_try(const records::CaseResult& now,
                                           const std::vector<std::string>& more) {
  constexpr std::int64_t kLeast = 20;  // parts of the peak
  std::vector<std::string> found;
  std::set<std::string> known;
  for (const auto& selection : now.spec.strategies) known.insert(selection.id);
  const auto phase = from_word<trace::Phase>(now.memory->peak_phase, trace::kPhaseCount);
  for (const auto& [word, bytes] : parts_by_size(*now.memory)) {
    const auto category = from_word<trace::Category>(word, trace::kCategoryCount);
    if (bytes == 0 || bytes * kLeast < now.memory->peak_allocated_bytes) break;
    if (!category || !phase) continue;
    for (const auto& id : strategies_against(*category, *phase).strategies)
      if (known.insert(id).second) found.push_back(id);
  }
  for (const auto& id : more)
    if (known.insert(id).second) found.push_back(id);
  return found;
}

std::string_view line_for_scripts(std::string_view strategy) {
  struct Row {
    std::string_view strategy, line;
  };
  static constexpr std::array kRows{
      Row{"accumulation", "(loss / n).backward() for each of n smaller batches"},
      Row{"activation-offload", "with torch.autograd.graph.save_on_cpu(pin_memory=True):"},
      Row{"adafactor", "torch.optim.Adafactor(parameters)"},
      Row{"adamw-4bit", "torchao.optim.AdamW4bit(parameters)"},
      Row{"adamw-8bit", "torchao.optim.AdamW8bit(parameters)"},
      Row{"attention", "torch.nn.functional.scaled_dot_product_attention(q, k, v)"},
      Row{"autocast", "with torch.autocast(\"cuda\", torch.bfloat16):"},
      Row{"checkpointing",
          "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) in place of block(x)"},
      Row{"foreach-off", "foreach=False among the optimizer's arguments"},
      Row{"freeze", "module.requires_grad_(False)"},
      Row{"fused-in-backward",
          "parameter.register_post_accumulate_grad_hook(update), an optimizer for each parameter,"},
      Row{"fused-optimizer", "fused=True among the optimizer's arguments"},
      Row{"lora", "peft.get_peft_model(model, peft.LoraConfig())"},
      Row{"optimizer-offload", "torchao.optim.CPUOffloadOptimizer(parameters, torch.optim.AdamW)"},
      Row{"paged", "bitsandbytes.optim.PagedAdamW(parameters)"}};
  const auto* row = std::ranges::find(kRows, strategy, &Row::strategy);
  return row == kRows.end() ? "" : row->line;
}

namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;

// What a program's trace shows of it at an event.
class Evidence {
 public:
  Evidence(const trace::Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event)
      : trace_(trace), event_(event) {
    for (const auto& lifetime : lifetimes)
      if (lifetime.first <= event && event < lifetime.last &&
          trace.events[lifetime.first].space == trace.own_space)
        alive_.push_back(&lifetime);
  }

  // A program that ended before its first backward may be one that trains.
  bool infers_alone() const {
    return has_phase({Phase::kEvaluation, Phase::kGeneration}) &&
           !has_phase({Phase::kBackward, Phase::kOptimizerStep});
  }

  // That the strategy would make the category smaller by so many bytes.
  bool shows(std::string_view strategy, Category category, std::int64_t least) const {
    if (strategy == "checkpointing")
      return !runs("torch/utils/checkpoint.py") && repeated() >= least;
    if (strategy == "adamw-8bit") return has_averages_of_adam();
    if (strategy == "fused-optimizer") return runs("torch/optim/adam.py") && by_foreach() >= least;
    if (strategy == "foreach-off") return by_foreach() >= least;
    return strategy == "fused-in-backward" && category == Category::kGradient &&
           needs_one_gradient_at_a_time();
  }

  // Gradients of an earlier step: an update has used them, and forward runs beside them.
  bool keeps_used_gradients() const {
    const auto& now = trace_.events[event_];
    return now.phase == Phase::kForward && std::ranges::any_of(alive_, [&](const Lifetime* one) {
             return one->category == Category::kGradient && made(*one).step < now.step;
           });
  }

 private:
  const trace::Event& made(const Lifetime& lifetime) const { return trace_.events[lifetime.first]; }

  bool has_phase(std::array<Phase, 2> phases) const {
    return std::ranges::any_of(trace_.events, [&](const trace::Event& event) {
      return event.phase == phases[0] || event.phase == phases[1];
    });
  }

  bool runs(std::string_view file) const {
    return std::ranges::any_of(trace_.files,
                               [&](const std::string& one) { return one.ends_with(file); });
  }

  // Activations that the same code makes again and again, as the layers of a model do: all but one
  // of each kind. The inputs of checkpointed blocks stay, at most the kind that takes most.
  std::int64_t repeated() const {
    struct Kind {
      std::int64_t bytes = 0, largest = 0;
    };
    std::map<std::int32_t, Kind> kinds;
    for (const auto* one : alive_) {
      if (one->category != Category::kActivation || made(*one).stack == trace::kNone) continue;
      auto& kind = kinds[made(*one).stack];
      kind.bytes += made(*one).requested_bytes;
      kind.largest = std::max(kind.largest, made(*one).requested_bytes);
    }
    std::int64_t all = 0, inputs = 0;
    for (const auto& [stack, kind] : kinds) {
      all += kind.bytes - kind.largest;
      inputs = std::max(inputs, kind.bytes - kind.largest);
    }
    return all - inputs;
  }

  // Two averages a parameter in full precision, which is what 8 bits make smaller.
  bool has_averages_of_adam() const {
    return std::ranges::any_of(trace_.names, [](const trace::Name& name) {
      return name.role == trace::Role::kOptimizerState && name.name.ends_with("exp_avg_sq") &&
             name.dtype == "float32";
    });
  }

  // Temporary tensors that an optimizer of PyTorch's makes of all parameters at a time.
  std::int64_t by_foreach() const {
    std::int64_t bytes = 0;
    for (const auto* one : alive_) {
      const auto op = made(*one).op;
      if (one->category == Category::kTemporary && made(*one).phase == Phase::kOptimizerStep &&
          op != trace::kNone &&
          trace_.operators[static_cast<std::size_t>(op)].find("_foreach_") != std::string::npos)
        bytes += made(*one).requested_bytes;
    }
    return runs("torch/optim/optimizer.py") ? bytes : 0;
  }

  // No accumulation, and nothing that reads all gradients before the update.
  bool needs_one_gradient_at_a_time() const {
    for (const auto* file : {"torch/nn/utils/clip_grad.py", "torch/amp/grad_scaler.py",
                             "torch/nn/parallel/distributed.py", "torch/distributed/fsdp/"})
      if (std::ranges::any_of(trace_.files, [&](const std::string& one) {
            return one.find(file) != std::string::npos;
          }))
        return false;
    auto phase = Phase::kBuild;
    std::int32_t step = trace::kNone;  // of the last backward
    for (const auto& event : trace_.events) {
      if (event.phase == Phase::kBackward && phase != Phase::kBackward) {
        if (event.step == step) return false;
        step = event.step;
      }
      phase = event.phase;
    }
    return true;
  }

  const trace::Trace& trace_;
  const std::uint64_t event_;
  std::vector<const Lifetime*> alive_;
};

std::string remedy_against(const Evidence& evidence, const trace::Breakdown& breakdown,
                           Category category, Phase phase, std::int64_t least) {
  const auto bytes = trace::by_category(breakdown)[static_cast<std::size_t>(category)];
  const auto total = trace::total(breakdown);
  if (bytes < least) return "";
  const auto sentence = [&](std::string_view line, const std::string& more) {
    return fmt::format("{:.0f}% is {}, which {} makes smaller{}",
                       100 * static_cast<double>(bytes) / static_cast<double>(total),
                       in_words(category), line, more);
  };
  if (category == Category::kGradient && evidence.keeps_used_gradients())
    return sentence("optimizer.zero_grad(set_to_none=True) before forward", "");
  for (const auto& strategy : strategies_against(category, phase).strategies)
    if (evidence.shows(strategy, category, least))
      return sentence(line_for_scripts(strategy),
                      fmt::format(" (peakbench describe {})", strategy));
  return "";
}

}  // namespace

std::string remedy_for_program(const trace::Trace& trace, const std::vector<Lifetime>& lifetimes,
                               std::uint64_t event) {
  constexpr std::int64_t kLeastOfUpdate = 8, kLeast = 4;  // parts of it all
  const auto breakdown = trace::breakdown_at(trace, lifetimes, event);
  const auto total = trace::total(breakdown);
  const auto phase = trace.events[event].phase;
  const Evidence evidence(trace, lifetimes, event);
  if (total == 0 || evidence.infers_alone()) return "";
  // One argument of the optimizer, and the training stays the same.
  auto found = remedy_against(evidence, breakdown, Category::kTemporary, phase,
                              std::max<std::int64_t>(total / kLeastOfUpdate, 1));
  if (!found.empty()) return found;
  auto bytes = trace::by_category(breakdown);
  // What is against parameters trains fewer of them.
  bytes[static_cast<std::size_t>(Category::kParameter)] = 0;
  const auto largest = static_cast<Category>(std::ranges::max_element(bytes) - bytes.begin());
  return remedy_against(evidence, breakdown, largest, phase,
                        std::max<std::int64_t>(total / kLeast, 1));
}

}  // namespace peakbench::analysis
