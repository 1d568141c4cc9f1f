// Muon for the matrices of the model's blocks; the rule that was there (the baseline's Adam or
// AdamW) for embeddings, output heads, biases and norms.
#include <algorithm>

#include "muon.h"
#include "peakbench/plugin.h"

namespace peakbench::muon {
namespace {

bool is_inside(const std::string& name, const std::string& block) {
  return name.starts_with(block) && name.size() > block.size() && name[block.size()] == '.';
}

class MuonStrategy : public Strategy {
 public:
  explicit MuonStrategy(const Options& options)
      : options_{.lr = options.number("lr"),
                 .momentum = options.number("momentum"),
                 .weight_decay = options.number("weight_decay"),
                 .nesterov = options.boolean("nesterov"),
                 .newton_schulz_steps = options.integer("ns_steps"),
                 .match_rms_adamw = options.string("adjust_lr") == "match_rms_adamw"} {}

  void apply(Recipe& recipe, Model& model) override {
    const auto in_block = [blocks = model.block_paths()](const Parameter& parameter) {
      return std::any_of(blocks.begin(), blocks.end(), [&](const std::string& block) {
        return is_inside(parameter.name, block);
      });
    };
    recipe.update_rule = std::make_shared<Muon>(options_, in_block, recipe.update_rule);
  }

 private:
  MuonOptions options_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  return std::make_unique<MuonStrategy>(context.options);
}

}  // namespace
}  // namespace peakbench::muon

PEAKBENCH_STRATEGY_PLUGIN(peakbench::muon::make)
