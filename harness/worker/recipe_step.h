// A step's passes over its batch, as a step runner asks for them.
#pragma once

#include <vector>

#include "worker/recipe_training.h"

namespace peakbench::worker {

class StepPasses final : public Passes {
 public:
  // Of the step that `training` runs. `parts`: its micro-batches. Both outlive this.
  StepPasses(RecipeTraining& training, const std::vector<MicroBatch>& parts,
             const RecipeTraining::PhaseListener& on_phase);

  using Passes::forward;
  using Passes::forward_backward;
  at::Tensor forward(bool grad, const PassOptions& options) override;
  void backward(const at::Tensor& loss) override;
  at::Tensor forward_backward(const PassOptions& options) override;

 private:
  void begin(const PassOptions& options);
  at::Tensor run_forward(std::size_t micro_batch, const PassOptions& options);
  void run_backward(at::Tensor objective);

  RecipeTraining& training_;
  const std::vector<MicroBatch>& parts_;
  const RecipeTraining::PhaseListener& on_phase_;
  std::int64_t begun_ = 0;
  bool last_was_run_ = false;
};

}  // namespace peakbench::worker
