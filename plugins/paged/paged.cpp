// Optimizer state that lives on the host and visits the card.
//
// bitsandbytes' paged optimizers leave this to CUDA's unified memory, which moves pages as kernels
// touch them. Here a parameter's state is copied in before its update and out after it, so that
// what the card holds has a bound: one parameter's state. Source of the idea:
// bitsandbytes/functional.py, get_paged and prefetch_tensor. https://arxiv.org/abs/2305.14314
#include <ATen/ATen.h>

#include <set>

#include "peakbench/host_memory.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

class Paged : public UpdateRule {
 public:
  explicit Paged(std::shared_ptr<UpdateRule> inner) : inner_(std::move(inner)) {}

  // One parameter after the other has nothing to group.
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    if (grouping == KernelGrouping::kForeach) grouping = KernelGrouping::kSingle;
    for (const Parameter& parameter : parameters) {
      if (!parameter.tensor.grad().defined()) continue;
      bring(parameter.tensor);
      inner_->update({parameter}, grouping);
      send_away(parameter.tensor);
    }
  }

  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }

  void forget(const at::Tensor& parameter) override {
    inner_->forget(parameter);
    std::erase_if(
        away_, [&](const auto& state) { return state.first == parameter.unsafeGetTensorImpl(); });
  }

 private:
  // What the rule itself keeps on the host (Adam's step) is not ours to move.
  void bring(const at::Tensor& parameter) {
    visit_state_of(parameter, [&](const std::string& name, at::Tensor& state) {
      if (away_.erase({parameter.unsafeGetTensorImpl(), name}) == 0) return;
      const at::Tensor host = state;
      state = at::empty_like(host, host.options().device(parameter.device()).pinned_memory(false));
      state.copy_(host, /*non_blocking=*/true);
    });
  }

  void send_away(const at::Tensor& parameter) {
    visit_state_of(parameter, [&](const std::string& name, at::Tensor& state) {
      if (state.device() != parameter.device()) return;
      state = copy_on_host(state);
      away_.emplace(parameter.unsafeGetTensorImpl(), name);
    });
  }

  template <typename Visit>
  void visit_state_of(const at::Tensor& parameter, Visit&& visit) {
    inner_->visit_state([&](const at::Tensor& owner, const std::string& name, at::Tensor& state) {
      if (owner.is_same(parameter)) visit(name, state);
    });
  }

  std::shared_ptr<UpdateRule> inner_;
  std::set<std::pair<const at::TensorImpl*, std::string>> away_;  // parameter, state
};

class Page : public UpdateRuleWrapper {
 public:
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<Paged>(std::move(inner));
  }
};

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kOffload, std::make_shared<Page>());
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
