// A change to be caught. The library is built twice under the same ids: as it was before a change
// (PEAKBENCH_PLANTED 0), when both planted strategies do nothing, and after it (PEAKBENCH_PLANTED
// 1).
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

constexpr bool kPlanted = PEAKBENCH_PLANTED != 0;

// Keeps a tensor made in the first block alive until the next step makes another: across every
// phase's peak.
class KeepsBytes : public BlockWrapper {
 public:
  explicit KeepsBytes(std::shared_ptr<torch::nn::Module> block) : block_(std::move(block)) {}

  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    if (index == 0 && kPlanted) {
      kept_.reset();
      const ModuleScope scope(*block_);
      kept_ = at::empty({1}, inputs.at(0).options().dtype(at::kByte).requires_grad(false));
    }
    return block(inputs);
  }

 private:
  std::shared_ptr<torch::nn::Module> block_;
  at::Tensor kept_;
};

// `encoder.layers.encoder_layer_0`, `model.layers.0`.
std::shared_ptr<torch::nn::Module> first_block(torch::nn::Module& root) {
  for (const auto& module : root.named_modules("", false)) {
    const auto& path = module.key();
    if (path.ends_with("layer_0") || path.ends_with(".0")) return module.value();
  }
  throw Unsupported("the model has no first block");
}

// Busy for a twentieth of a step: of the fastest so far, so that what disturbs a step is no part of
// the slow-down.
class Delay : public StepContext {
 public:
  std::shared_ptr<void> enter_forward(const Pass&) override {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    if (last_end_ != Clock::time_point{}) fastest_ = std::min(fastest_, begin - last_end_);
    if (kPlanted && last_end_ != Clock::time_point{}) {
      const auto until = begin + fastest_ / 20;
      while (Clock::now() < until) continue;
    }
    last_end_ = Clock::now();
    return nullptr;
  }

 private:
  std::chrono::steady_clock::time_point last_end_{};
  std::chrono::steady_clock::duration fastest_ = std::chrono::steady_clock::duration::max();
};

// What error feedback keeps of each gradient: made in backward, and nobody's to free.
class Residuals : public GradientHook {
 public:
  void on_gradient(const Parameter& parameter, const Pass&) override {
    auto& residual = residuals_[parameter.name];
    if (!residual.defined()) residual = parameter.tensor.grad().clone();
  }

 private:
  std::map<std::string, at::Tensor> residuals_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  if (context.id == "planted-delay")
    recipe.step_contexts.push_back(std::make_shared<Delay>());
  else if (context.id == "keeps-residual")
    recipe.gradient_hooks.emplace_back(GradientPlace::kReduce, std::make_shared<Residuals>());
  else
    recipe.block_wrappers.emplace_back(BlockPlace::kOffload,
                                       std::make_shared<KeepsBytes>(first_block(model.module())));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
