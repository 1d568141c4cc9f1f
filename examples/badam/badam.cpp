// BAdam: one block of the model is trained at a time, one after another.
//
// https://arxiv.org/abs/2404.02827, algorithm 1, with one block for each of the model's repeated
// blocks; what is outside of them is not trained, as in the authors' implementation. Backward ends
// at the block that is trained, and what is below it keeps no activations.
#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

bool belongs_to(const Parameter& parameter, const std::string& block) {
  return parameter.name.starts_with(block + ".");
}

class OneBlockAtATime : public StepListener {
 public:
  // `blocks` in the order in which they are trained.
  OneBlockAtATime(std::vector<std::string> blocks, std::int64_t interval)
      : blocks_(std::move(blocks)), interval_(interval) {}

  void on_step_begin(Training& training, std::int64_t step) override {
    if (step % interval_ != 0) return;
    const auto turn = static_cast<std::size_t>(step / interval_) % blocks_.size();
    for (const Parameter& parameter : training.parameters()) {
      const bool trained = belongs_to(parameter, blocks_[turn]);
      training.set_trainable(parameter, trained);
      if (!trained) training.forget(parameter);
    }
  }

 private:
  std::vector<std::string> blocks_;
  std::int64_t interval_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  std::vector<std::string> blocks = model.block_paths();
  recipe.freezing.emplace_back([blocks](const Parameter& parameter) {
    for (const std::string& block : blocks)
      if (belongs_to(parameter, block)) return false;
    return true;
  });
  if (context.options.string("order") == "descending") blocks = {blocks.rbegin(), blocks.rend()};
  recipe.step_listeners.push_back(
      std::make_shared<OneBlockAtATime>(std::move(blocks), context.options.integer("interval")));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
