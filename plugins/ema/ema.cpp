// The average of the weights over the steps, beside the training that it does not change.
//
// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn: the first update copies the
// weights, each later one is one foreach lerp in place. As the average is of the trained
// parameters, it is made with their first update and not with the model; frozen ones have none.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"
#include "peakbench/state_map.h"

namespace peakbench {
namespace {

class Averaged : public UpdateRule {
 public:
  Averaged(std::shared_ptr<UpdateRule> inner, double decay)
      : inner_(std::move(inner)), decay_(decay) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<at::Tensor> trained;  // the inner rule may take gradients away
    for (const Parameter& parameter : parameters)
      if (parameter.tensor.grad().defined()) trained.push_back(parameter.tensor);
    inner_->update(parameters, grouping);
    average(trained);
  }

  void visit_state(const StateVisitor& visit) override {
    inner_->visit_state(visit);
    for (auto& [parameter, average] : averages_) visit(parameter, "ema", average);
  }

  void forget(const at::Tensor& parameter) override {
    inner_->forget(parameter);
    averages_.forget(parameter);
  }

 private:
  void average(const std::vector<at::Tensor>& parameters) {
    std::vector<at::Tensor> averages, current;
    for (const at::Tensor& parameter : parameters) {
      if (const at::Tensor* average = averages_.find(parameter)) {
        averages.push_back(*average);
        current.push_back(parameter);
      } else {
        averages_.of(parameter, [&] { return parameter.detach().clone(); });
      }
    }
    if (!averages.empty()) at::_foreach_lerp_(averages, current, 1 - decay_);
  }

  std::shared_ptr<UpdateRule> inner_;
  double decay_;
  StateMap<at::Tensor> averages_;
};

class Average : public UpdateRuleWrapper {
 public:
  explicit Average(double decay) : decay_(decay) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Averaged>(std::move(inner), decay_);
  }

 private:
  double decay_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.update_rule_wrappers.emplace_back(
      UpdatePlace::kAverage, std::make_shared<Average>(context.options.number("decay")));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
