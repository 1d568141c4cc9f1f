#include "reports/analysis/strategies_against.h"

#include <algorithm>
#include <string_view>

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

namespace {

// A program that ended before its first backward may be one that trains.
bool infers_alone(const trace::Trace& trace) {
  using trace::Phase;
  const auto has = [&](Phase one, Phase other) {
    return std::ranges::any_of(trace.events, [&](const trace::Event& event) {
      return event.phase == one || event.phase == other;
    });
  };
  return has(Phase::kEvaluation, Phase::kGeneration) &&
         !has(Phase::kBackward, Phase::kOptimizerStep);
}

bool checkpoints(const trace::Trace& trace) {
  return std::ranges::any_of(trace.files, [](const std::string& file) {
    return file.ends_with("torch/utils/checkpoint.py");
  });
}

// Two averages a parameter in full precision, which is what 8 bits make smaller.
bool has_averages_of_adam(const trace::Trace& trace) {
  return std::ranges::any_of(trace.names, [](const trace::Name& name) {
    return name.role == trace::Role::kOptimizerState && name.name.ends_with("exp_avg_sq") &&
           name.dtype == "float32";
  });
}

// Which makes temporary tensors of all parameters at a time.
bool updates_by_foreach(const trace::Trace& trace) {
  return std::ranges::any_of(trace.operators, [](std::string_view name) {
    return name.find("_foreach_") != std::string_view::npos;
  });
}

}  // namespace

Against strategies_for_program(const trace::Trace& trace, trace::Category category,
                               trace::Phase phase) {
  using trace::Category;
  const bool serves = category == Category::kActivation       ? !checkpoints(trace)
                      : category == Category::kOptimizerState ? has_averages_of_adam(trace)
                      : category == Category::kTemporary      ? updates_by_foreach(trace)
                                                              : true;
  return serves && !infers_alone(trace) ? strategies_against(category, phase) : Against{};
}

}  // namespace peakbench::analysis
