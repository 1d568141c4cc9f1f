// Activation checkpointing: computation in backward for memory in forward.
#include "frame.h"
#include "peakbench/plugin.h"

namespace peakbench::checkpointing {
namespace {

class EveryNth : public BlockWrapper {
 public:
  explicit EveryNth(std::size_t every) : every_(every) {}

  at::Tensor run(std::size_t index, std::size_t count, const BlockFunction& block,
                 const std::vector<at::Tensor>& inputs) override {
    return index % every_ == 0 ? run_checkpointed(block, inputs) : block(inputs);
  }

 private:
  std::size_t every_;
};

class Checkpointing : public Strategy {
 public:
  explicit Checkpointing(const Options& options)
      : every_(static_cast<std::size_t>(options.integer("every"))) {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint, std::make_shared<EveryNth>(every_));
  }

 private:
  std::size_t every_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<Checkpointing>(context.options);
}

}  // namespace
}  // namespace peakbench::checkpointing

PEAKBENCH_STRATEGY_PLUGIN(peakbench::checkpointing::make)
