// Hooks on gradients: LibTorch has one slot a tensor for them, which the recipe's share.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_map>

#include "peakbench/observer.h"
#include "worker/contributions.h"
#include "worker/recipe_training.h"

namespace peakbench::worker {
namespace {

namespace autograd = torch::autograd;
using Callbacks = std::vector<Training::GradientCallback>;

class SharedGradientHook final : public autograd::PostAccumulateGradHook {
 public:
  SharedGradientHook(Parameter parameter, const torch::nn::Module& owner,
                     const Callbacks& callbacks, const Pass& pass)
      : parameter_(std::move(parameter)), owner_(owner), callbacks_(callbacks), pass_(pass) {}

  void operator()(const autograd::Variable&) override {
    ModuleScope scope(owner_);  // what happens here belongs to the parameter's module
    at::NoGradGuard no_grad;
    for (const auto& callback : callbacks_) callback(parameter_, pass_);
  }

 private:
  Parameter parameter_;
  const torch::nn::Module& owner_;
  const Callbacks& callbacks_;
  const Pass& pass_;
};

// The module that registered each parameter; the first one where modules share it.
std::unordered_map<const at::TensorImpl*, const torch::nn::Module*> owners(
    const torch::nn::Module& root) {
  std::unordered_map<const at::TensorImpl*, const torch::nn::Module*> owners;
  const auto add = [&](const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
      owners.try_emplace(item.value().unsafeGetTensorImpl(), &module);
    }
  };
  add(root);
  for (const auto& module : root.modules(/*include_self=*/false)) add(*module);
  return owners;
}

}  // namespace

// The gradient is counted and has its name before anybody is called, and its name again where it
// was exchanged.
void RecipeTraining::collect_gradient_hooks() {
  if (tally_)
    gradient_callbacks_.emplace_back(
        [this](const Parameter& parameter, const Pass&) { tally_->note_gradient(parameter); });
  const auto name = [](const Parameter& parameter, const Pass&) {
    observer()->name_storage(parameter.tensor.grad(), StorageRole::kGradient, parameter.name);
  };
  if (observer() != nullptr) gradient_callbacks_.emplace_back(name);
  for (const auto& [place, hook] : recipe_.gradient_hooks) {
    gradient_callbacks_.emplace_back([hook](const Parameter& parameter, const Pass& pass) {
      hook->on_gradient(parameter, pass);
    });
    if (observer() != nullptr) gradient_callbacks_.emplace_back(name);
  }
}

void RecipeTraining::install_gradient_hooks() {
  if (gradient_callbacks_.empty()) return;
  const auto owner_of = owners(model_.module());
  for (const Parameter& parameter : parameters_) {
    autograd::impl::set_post_acc_grad_hooks(
        parameter.tensor, std::make_unique<SharedGradientHook>(
                              parameter, *owner_of.at(parameter.tensor.unsafeGetTensorImpl()),
                              gradient_callbacks_, pass_));
  }
}

void RecipeTraining::on_gradient(GradientCallback callback) {
  const Owner* owner = current_owner();
  if (owner != nullptr && !callback)
    throw PluginError(owner->path + ": " + owner->id +
                      " registers an empty function with on_gradient");
  if (owner != nullptr && contributions_ != nullptr) {
    callback = [&hook = contributions_->add_hook(*owner), inner = std::move(callback)](
                   const Parameter& parameter, const Pass& pass) {
      hook.calls.fetch_add(1, std::memory_order_relaxed);
      call_plugin(hook.owner, "on_gradient", [&] { inner(parameter, pass); });
    };
  }
  gradient_callbacks_.push_back(std::move(callback));
}

}  // namespace peakbench::worker
