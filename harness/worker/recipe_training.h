// Carries a recipe out: slots and wrappers at their fixed places, one step at a time.
#pragma once

#include <functional>

#include "peakbench/recipe.h"
#include "trace/trace.h"

namespace peakbench::worker {

class RecipeTraining final : public Training {
 public:
  // Applies the model transforms, freezes, installs block wrappers and hooks. May throw
  // Unsupported.
  RecipeTraining(Model& model, Recipe recipe);
  ~RecipeTraining() override;

  using PhaseListener = std::function<void(trace::Phase)>;
  // One step: forward and backward of each micro-batch, the schedule, gradients to none. Returns
  // the loss, a scalar tensor on the device: the mean over micro-batches.
  at::Tensor step(const Batch& batch, const PhaseListener& on_phase);

  // Training.
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  const Recipe& recipe() const override { return recipe_; }
  void update_all() override;
  void update(const std::vector<at::Tensor>& parameters) override;
  void on_gradient(int order, std::function<void(const Parameter&)> callback) override;

 private:
  void freeze();
  void collect_parameters();
  void install_block_wrappers();
  void install_gradient_hooks();
  at::Tensor forward(const Batch& batch);

  Model& model_;
  Recipe recipe_;
  std::vector<Parameter> parameters_;
  std::vector<std::pair<int, std::function<void(const Parameter&)>>> gradient_callbacks_;
};

}  // namespace peakbench::worker
