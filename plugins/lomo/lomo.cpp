// LOMO: plain SGD inside backward, so that neither optimizer state nor a buffer of gradients
// exists. Source: "Full Parameter Fine-tuning for Large Language Models with Limited Resources",
// https://arxiv.org/abs/2306.09782, with the hooks that PyTorch has had since (tutorial on
// Tensor.register_post_accumulate_grad_hook): each update happens as its gradient is complete. The
// authors' code computes a bfloat16 update in float32 and rounds; so does the one kernel here.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"
#include "peakbench/update_in_backward.h"

namespace peakbench {
namespace {

class PlainSgd : public UpdateRule {
 public:
  explicit PlainSgd(double lr) : lr_(lr) {}
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    for (const auto& [name, parameter] : parameters) {
      if (parameter.grad().defined()) parameter.add_(parameter.grad(), -lr_);
    }
  }
  void visit_state(const StateVisitor& visit) override {}  // there is none
  void forget(const at::Tensor& parameter) override {}

 private:
  double lr_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule = std::make_shared<PlainSgd>(context.options.number("lr"));
  recipe.schedule = std::make_shared<UpdateInBackward>();
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
