#include "reports/analysis/strategies_against.h"

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

}  // namespace peakbench::analysis
