// Gradients on the host from the moment that backward has them: the card never holds all of them.
//
// The method of torchao.optim.CPUOffloadOptimizer's offload_gradients, for any update. Unlike
// there, micro-batches work: what a later one adds is added on the host. Source:
// torchao/optim/cpu_offload.py, backward_hook
#include <ATen/ATen.h>

#include <unordered_map>
#include <unordered_set>

#include "peakbench/host_memory.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

// The parameters whose `.grad()` is on the host now.
using Moved = std::unordered_set<const at::TensorImpl*>;

class MoveGradient : public GradientHook {
 public:
  explicit MoveGradient(std::shared_ptr<Moved> moved) : moved_(std::move(moved)) {}

  // Gradients of an earlier pass of the step are what its runner asked for: they stay.
  void on_gradient(const Parameter& parameter, const Pass& pass) override {
    if (!pass.last) return;
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    at::Tensor host = copy_on_host(gradient);
    gradient.reset();
    const auto* impl = parameter.tensor.unsafeGetTensorImpl();
    if (const auto earlier = earlier_.find(impl); earlier != earlier_.end()) {
      host = earlier->second.tensor.add_(host);
      earlier_.erase(earlier);
    }
    if (pass.last_micro_batch) {
      gradient = host;
      moved_->insert(impl);
    } else {
      earlier_.emplace(impl, Parameter{parameter.name, host});
    }
  }

  void visit_memory(const MemoryVisitor& visit) override {
    for (const auto& [impl, sum] : earlier_) visit(sum.name, sum.tensor, StorageRole::kGradient);
  }

 private:
  std::shared_ptr<Moved> moved_;
  // Of the pass's micro-batches: a parameter's name, and the sum of its gradients.
  std::unordered_map<const at::TensorImpl*, Parameter> earlier_;
};

// Brings gradients to where their parameters are updated, one at a time. What updates on the host
// (optimizer-offload, which is around this) gives it no parameter whose gradient was moved.
class WithGradientsBack : public UpdateRule {
 public:
  WithGradientsBack(std::shared_ptr<UpdateRule> inner, std::shared_ptr<Moved> moved)
      : inner_(std::move(inner)), moved_(std::move(moved)) {}

  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    std::vector<Parameter> others;
    for (const Parameter& parameter : parameters) {
      if (moved_->erase(parameter.tensor.unsafeGetTensorImpl()) == 0) {
        others.push_back(parameter);
      } else if (parameter.tensor.grad().defined()) {
        update_one(parameter, grouping);
      }
    }
    if (!others.empty()) inner_->update(others, grouping);
  }

  void visit_state(const StateVisitor& visit) override { inner_->visit_state(visit); }
  void forget(const at::Tensor& parameter) override { inner_->forget(parameter); }

 private:
  // One parameter has nothing to group.
  void update_one(const Parameter& parameter, KernelGrouping grouping) {
    if (grouping == KernelGrouping::kForeach) grouping = KernelGrouping::kSingle;
    at::Tensor& gradient = parameter.tensor.mutable_grad();
    gradient = at::empty_like(gradient, parameter.tensor.options()).copy_(gradient);
    inner_->update({parameter}, grouping);
    gradient.reset();
  }

  std::shared_ptr<UpdateRule> inner_;
  std::shared_ptr<Moved> moved_;
};

class BringGradientsBack : public UpdateRuleWrapper {
 public:
  explicit BringGradientsBack(std::shared_ptr<Moved> moved) : moved_(std::move(moved)) {}
  std::shared_ptr<UpdateRule> wrap(std::shared_ptr<UpdateRule> inner) override {
    return std::make_shared<WithGradientsBack>(std::move(inner), moved_);
  }

 private:
  std::shared_ptr<Moved> moved_;
};

void apply(const StrategyContext&, Recipe& recipe, Model&) {
  const auto moved = std::make_shared<Moved>();
  recipe.gradient_hooks.emplace_back(GradientPlace::kOffload,
                                     std::make_shared<MoveGradient>(moved));
  recipe.update_rule_wrappers.emplace_back(UpdatePlace::kOffload,
                                           std::make_shared<BringGradientsBack>(moved));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
