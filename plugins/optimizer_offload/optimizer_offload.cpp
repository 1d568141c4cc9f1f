// The optimizer on the host: state never is on the card.
//
// The method of torchao.optim.CPUOffloadOptimizer, one parameter after the other. Unlike there,
// every parameter goes, also the smallest; a gradient is copied when its update is due, and its
// host memory freed after it, so that the host holds one at a time. A gradient that
// gradient-offload has brought to the host already is taken as it is. Source:
// torchao/optim/cpu_offload.py
#include <ATen/ATen.h>

#include "peakbench/host_memory.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/stand_ins.h"

namespace peakbench {
namespace {

// The parameter on the host, where the rule updates it.
struct OnHost {
  at::Tensor tensor;
};

class Offloaded : public UpdateRule {
 public:
  explicit Offloaded(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}

  // One parameter after the other has nothing to group.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kForeach) grouping = KernelGrouping::kSingle;
    for (const Parameter& parameter : parameters)
      if (parameter.tensor.grad().defined()) update_one(parameter, grouping);
  }

  void visit_state(const StateVisitor& visit) override {
    copies_.visit_inner(*inner_, visit);
    for (auto& [parameter, copy] : copies_) visit(parameter, "host_copy", copy.tensor);
  }

  void forget(const at::Tensor& parameter) override { copies_.forget(*inner_, parameter); }

 private:
  void update_one(const Parameter& parameter, KernelGrouping grouping) {
    const at::Tensor& here = parameter.tensor;
    const OnHost& host = copies_.of(here, [&] { return OnHost{copy_on_host(here)}; });
    host.tensor.mutable_grad() = here.grad().is_cpu() ? here.grad() : copy_on_host(here.grad());
    if (observer() != nullptr)
      observer()->name_storage(host.tensor.grad(), StorageRole::kGradient, parameter.name);
    here.mutable_grad().reset();
    inner_->update({{parameter.name, host.tensor}}, grouping);
    // Before the next forward on the same stream, and beside the next parameter's update.
    here.copy_(host.tensor, /*non_blocking=*/true);
    host.tensor.mutable_grad().reset();
  }

  std::shared_ptr<UpdateRule> inner_;
  StandIns<OnHost> copies_;
};

class MoveToHost : public UpdateRuleWrapper {
 public:
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Offloaded>(std::move(inner));
  }
};

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kOffload, std::make_shared<MoveToHost>());
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
