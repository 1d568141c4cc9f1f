// Mixed-precision training's copy of the weights: small updates are not lost in 16 bits.
//
// Lifetimes are Megatron-LM's: a gradient is converted when all are complete, and the 16-bit one is
// freed at once. Source: megatron/core/optimizer/optimizer.py,
// Float16OptimizerWithFloat16Params. https://arxiv.org/abs/1710.03740
#include <ATen/ATen.h>

#include <algorithm>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/stand_ins.h"

namespace peakbench {
namespace {

bool needs_master(const at::Tensor& parameter) {
  return at::isReducedFloatingType(parameter.scalar_type());
}

// fp32, on the parameter's device. Made at a parameter's first update, as optimizer state is.
struct Master {
  at::Tensor tensor;
};

class OnMasters : public UpdateRule {
 public:
  explicit OnMasters(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<Parameter> given, halves, masters;
    for (const Parameter& parameter : parameters) {
      if (!parameter.tensor.grad().defined()) continue;
      if (needs_master(parameter.tensor)) {
        halves.push_back(parameter);
        masters.push_back(master_of(parameter));
      }
      given.push_back(needs_master(parameter.tensor) ? masters.back() : parameter);
    }
    inner_->update(given, grouping);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i].tensor.copy_(masters[i].tensor);
      masters[i].tensor.mutable_grad().reset();
    }
  }

  // An outer wrapper may put a master elsewhere: its data moves, and the tensor stays the one that
  // the inner state belongs to.
  void visit_state(const StateVisitor& visit) override {
    masters_.visit_inner(*inner_, visit);
    for (auto& [parameter, master] : masters_) {
      at::Tensor data = master.tensor.detach();
      const at::Tensor before = data;
      visit(parameter, "master", data);
      if (!data.is_same(before)) master.tensor.set_data(data);
    }
  }

  void forget(const at::Tensor& parameter) override { masters_.forget(*inner_, parameter); }

 private:
  // With its gradient, which is the parameter's own no longer.
  Parameter master_of(const Parameter& parameter) {
    const at::Tensor& half = parameter.tensor;
    const Master& master = masters_.of(half, [&] { return Master{half.detach().to(at::kFloat)}; });
    master.tensor.mutable_grad() = half.grad().to(at::kFloat);
    half.mutable_grad().reset();
    if (observer() != nullptr)
      observer()->name_storage(master.tensor.grad(), StorageRole::kGradient, parameter.name);
    return {parameter.name, master.tensor};
  }

  std::shared_ptr<UpdateRule> inner_;
  StandIns<Master> masters_;
};

class MakeMasters : public UpdateRuleWrapper {
 public:
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<OnMasters>(std::move(inner));
  }
};

// Where nothing is in 16 bits there is nothing to copy, and figures would be the baseline's.
class NeedsHalfPrecision : public StepListener {
 public:
  void on_step_begin(Training& training, std::int64_t step) override {
    const auto& parameters = training.parameters();
    const auto needs = [](const Parameter& one) { return needs_master(one.tensor); };
    if (step > 0 || std::any_of(parameters.begin(), parameters.end(), needs)) return;
    throw Unsupported(
        "master-weights: no trained parameter is in 16 bits, so that each is its own master; "
        "train in bf16 (--dtype bf16)");
  }
};

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kMaster, std::make_shared<MakeMasters>());
  recipe.step_listeners.push_back(std::make_shared<NeedsHalfPrecision>());
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
