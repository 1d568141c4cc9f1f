// Forward and backward as a CUDA graph: captured once, then replayed with one launch a step.
//
// PyTorch's notes on CUDA semantics, "Whole-network capture", in the form that its example with
// GradScaler has: forward and backward are in the graph, the optimizer step is not.
// https://docs.pytorch.org/docs/stable/notes/cuda.html#whole-network-capture
#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "peakbench/device_graph.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class Replay : public StepRunner {
 public:
  Replay(std::unique_ptr<DeviceGraph> graph, std::int64_t warm_up)
      : graph_(std::move(graph)), warm_up_(warm_up) {}

  at::Tensor run(Training& training, Passes& passes, std::int64_t step) override {
    if (!loss_.defined()) capture(training.parameters(), passes);
    graph_->replay();
    if (restores_random_states_ && graph_->draws_random_numbers())
      throw Unsupported(
          "cuda-graphs: a block that runs again in backward (checkpointing) draws random numbers "
          "(dropout), and a captured generator cannot draw the same ones twice: set dropout to 0, "
          "or leave one of the two strategies out");
    // Each step takes the gradients away, and each replay writes them where the capture had them.
    for (const auto& [parameter, gradient] : gradients_) parameter.mutable_grad() = gradient;
    return loss_;
  }

  void visit_memory(const MemoryVisitor& visit) override {
    visit("loss", loss_, StorageRole::kKept);
  }

 private:
  void capture(const std::vector<Parameter>& parameters, Passes& passes) {
    graph_->warm_up([&] {
      for (std::int64_t i = 0; i < warm_up_; ++i) {
        take_gradients_away(parameters);
        passes.forward_backward({.last = false});
      }
    });
    take_gradients_away(parameters);  // so that backward makes them in the graph's pool
    const auto restored = random_states_restored();
    graph_->capture([&] { loss_ = passes.forward_backward(); });
    restores_random_states_ = random_states_restored() != restored;
    for (const auto& [name, parameter] : parameters)
      if (parameter.grad().defined()) gradients_.emplace_back(parameter, parameter.grad());
  }

  static void take_gradients_away(const std::vector<Parameter>& parameters) {
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad().reset();
  }

  std::unique_ptr<DeviceGraph> graph_;
  std::int64_t warm_up_;
  bool restores_random_states_ = false;
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients_;  // parameter, where its gradient is
  at::Tensor loss_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  auto graph = make_device_graph();
  if (graph == nullptr)
    throw Unsupported(
        "cuda-graphs needs a CUDA card, real or emulated: no other device has graphs to capture a "
        "step in (--device emulated:h100-80gb)");
  recipe.step_runner =
      std::make_shared<Replay>(std::move(graph), context.options.integer("warmup"));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
