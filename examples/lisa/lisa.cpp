// LISA: a few randomly chosen blocks are trained at a time, and what is outside of the blocks
// always.
//
// https://arxiv.org/abs/2403.17919, algorithm 1. An example of a StepListener: which parameters are
// trained changes from step to step. A block that is no longer trained has no gradients, and its
// optimizer state is dropped.
#include <numeric>
#include <random>
#include <set>

#include "peakbench/plugin.h"

namespace {

using namespace peakbench;

// Which of the blocks a parameter belongs to; -1: none.
std::int64_t block_of(const Parameter& parameter, const std::vector<std::string>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (parameter.name.starts_with(blocks[i] + ".")) return static_cast<std::int64_t>(i);
  return -1;
}

// `wanted` of `count` numbers. The same for a seed on every machine.
std::set<std::int64_t> sample(std::int64_t count, std::int64_t wanted, std::int64_t seed) {
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(wanted); ++i)
    std::swap(numbers[i], numbers[i + random() % (numbers.size() - i)]);
  return {numbers.begin(), numbers.begin() + wanted};
}

struct LisaOptions {
  std::int64_t layers, interval, seed;
};

class SampledBlocks : public StepListener {
 public:
  SampledBlocks(LisaOptions options, std::vector<std::string> blocks)
      : options_(options), blocks_(std::move(blocks)) {}

  // At the beginning of a step, before anything ran.
  void on_step_begin(Training& training, std::int64_t step) override {
    if (step % options_.interval != 0) return;
    const auto count = static_cast<std::int64_t>(blocks_.size());
    const auto chosen = sample(count, options_.layers, options_.seed + step);
    for (const Parameter& parameter : training.parameters()) {
      const std::int64_t block = block_of(parameter, blocks_);
      const bool trained = block < 0 || chosen.contains(block);
      training.set_trainable(parameter, trained);
      if (!trained) training.forget(parameter);
    }
  }

 private:
  LisaOptions options_;
  std::vector<std::string> blocks_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const LisaOptions options{.layers = context.options.integer("layers"),
                            .interval = context.options.integer("interval"),
                            .seed = context.options.integer("seed")};
  auto blocks = model.block_paths();
  if (options.layers > static_cast<std::int64_t>(blocks.size()))
    throw Unsupported("lisa,layers=" + std::to_string(options.layers) + ": the model has " +
                      std::to_string(blocks.size()) + " blocks");
  recipe.step_listeners.push_back(std::make_shared<SampledBlocks>(options, std::move(blocks)));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
