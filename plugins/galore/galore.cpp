// GaLore: optimizer state of low rank, weights of full rank.
#include <algorithm>

#include "low_rank_updates.h"
#include "peakbench/plugin.h"

namespace peakbench::galore {
namespace {

class ProjectGradients : public UpdateRuleWrapper {
 public:
  explicit ProjectGradients(GaloreOptions options) : options_(std::move(options)) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<LowRankUpdates>(std::move(inner), options_);
  }

 private:
  GaloreOptions options_;
};

// Where no matrix is large enough nothing would be projected, and figures would be the baseline's.
class NeedsAMatrix : public StepListener {
 public:
  explicit NeedsAMatrix(GaloreOptions options) : options_(std::move(options)) {}
  void on_step_begin(Training& training, std::int64_t step) override {
    const auto& parameters = training.parameters();
    const auto projects = [&](const Parameter& one) { return is_projected(one, options_); };
    if (step > 0 || std::any_of(parameters.begin(), parameters.end(), projects)) return;
    throw Unsupported("galore: no trained matrix in the model's blocks has more than " +
                      std::to_string(options_.rank) +
                      " rows and columns, so that none is projected; choose a smaller rank");
  }

 private:
  GaloreOptions options_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  const GaloreOptions options{.rank = context.options.integer("rank"),
                              .update_gap = context.options.integer("update_gap"),
                              .scale = context.options.number("scale"),
                              .blocks = model.block_paths()};
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kProject,
                                           std::make_shared<ProjectGradients>(options));
  recipe.step_listeners.push_back(std::make_shared<NeedsAMatrix>(options));
}

}  // namespace
}  // namespace peakbench::galore

PEAKBENCH_STRATEGY_PLUGIN(peakbench::galore::apply)
