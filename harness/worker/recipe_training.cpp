#include "worker/recipe_training.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>

#include "peakbench/errors.h"
#include "peakbench/observer.h"

namespace peakbench::worker {
namespace {

namespace autograd = torch::autograd;
using Callbacks = std::vector<std::pair<int, std::function<void(const Parameter&)>>>;

// LibTorch has one slot a tensor for this hook; the recipe's callbacks share it.
class GradientHook final : public autograd::PostAccumulateGradHook {
 public:
  GradientHook(Parameter parameter, const torch::nn::Module& owner, const Callbacks& callbacks)
      : parameter_(std::move(parameter)), owner_(owner), callbacks_(callbacks) {}

  void operator()(const autograd::Variable&) override {
    ModuleScope scope(owner_);  // what happens here belongs to the parameter's module
    at::NoGradGuard no_grad;
    for (const auto& [order, callback] : callbacks_) callback(parameter_);
  }

 private:
  Parameter parameter_;
  const torch::nn::Module& owner_;
  const Callbacks& callbacks_;
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

Batch micro_batch(const Batch& batch, std::int64_t index, std::int64_t count) {
  if (count == 1) return batch;
  const std::int64_t size = batch.input.size(0) / count;
  const auto part = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(0, index * size, size) : t;
  };
  return {part(batch.input), part(batch.target)};
}

}  // namespace

RecipeTraining::RecipeTraining(Model& model, Recipe recipe)
    : model_(model), recipe_(std::move(recipe)) {
  if (recipe_.update_rule == nullptr || recipe_.schedule == nullptr) {
    throw std::logic_error(
        "the recipe has no update rule or no schedule: the baseline must be applied first");
  }
  for (const auto& transform : {recipe_.base_weights, recipe_.adapters}) {
    if (transform) transform->apply(model_);
  }
  freeze();
  collect_parameters();
  install_block_wrappers();
  recipe_.schedule->prepare(*this);
  if (observer() != nullptr) {
    on_gradient(std::numeric_limits<int>::min(), [](const Parameter& parameter) {
      observer()->name_storage(parameter.tensor.grad(), StorageRole::kGradient, parameter.name);
    });
  }
  install_gradient_hooks();
}

RecipeTraining::~RecipeTraining() {
  for (const Parameter& parameter : parameters_)
    autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void RecipeTraining::freeze() {
  for (const auto& item : model_.module().named_parameters()) {
    const Parameter parameter{item.key(), item.value()};
    const bool frozen = std::any_of(recipe_.freezing.begin(), recipe_.freezing.end(),
                                    [&](const auto& freezes) { return freezes(parameter); });
    if (frozen) parameter.tensor.set_requires_grad(false);
  }
}

void RecipeTraining::collect_parameters() {
  for (const auto& item : model_.module().named_parameters()) {
    if (item.value().requires_grad()) parameters_.push_back({item.key(), item.value()});
  }
  if (parameters_.empty()) throw Unsupported("no parameter is left to train");
}

void RecipeTraining::install_block_wrappers() {
  std::stable_sort(recipe_.block_wrappers.begin(), recipe_.block_wrappers.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::shared_ptr<BlockWrapper>> wrappers;
  for (const auto& [place, wrapper] : recipe_.block_wrappers) wrappers.push_back(wrapper);
  model_.set_block_wrappers(std::move(wrappers));
}

void RecipeTraining::install_gradient_hooks() {
  if (gradient_callbacks_.empty()) return;
  std::stable_sort(gradient_callbacks_.begin(), gradient_callbacks_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto owner_of = owners(model_.module());
  for (const Parameter& parameter : parameters_) {
    autograd::impl::set_post_acc_grad_hooks(
        parameter.tensor,
        std::make_unique<GradientHook>(
            parameter, *owner_of.at(parameter.tensor.unsafeGetTensorImpl()), gradient_callbacks_));
  }
}

void RecipeTraining::on_gradient(int order, std::function<void(const Parameter&)> callback) {
  gradient_callbacks_.emplace_back(order, std::move(callback));
}

at::Tensor RecipeTraining::forward(const Batch& batch) {
  std::vector<std::shared_ptr<void>> contexts;
  for (const auto& context : recipe_.step_contexts) contexts.push_back(context->enter());
  std::vector<std::unique_ptr<SavedTensorHooksScope>> hooks;
  for (const auto& hook : recipe_.saved_tensor_hooks) {
    hooks.push_back(std::make_unique<SavedTensorHooksScope>(hook));
  }
  at::Tensor loss;
  {
    const at::Tensor hidden = model_.hidden_states(batch);
    loss = recipe_.loss_head ? recipe_.loss_head->loss(model_, hidden, batch)
                             : model_.loss(hidden, batch);
  }
  while (!hooks.empty()) hooks.pop_back();  // a stack: last in, first out
  while (!contexts.empty()) contexts.pop_back();
  return loss;
}

at::Tensor RecipeTraining::step(const Batch& batch, const PhaseListener& on_phase) {
  const std::int64_t count = recipe_.micro_batches;
  at::Tensor total;
  for (std::int64_t i = 0; i < count; ++i) {
    on_phase(trace::Phase::kForward);
    at::Tensor loss = forward(micro_batch(batch, i, count));
    if (count > 1) loss = loss / count;
    on_phase(trace::Phase::kBackward);
    autograd::backward({loss}, {});
    if (total.defined()) {
      at::NoGradGuard no_grad;
      total.add_(loss.detach());
    } else {
      total = loss.detach();
    }
  }
  on_phase(trace::Phase::kOptimizerStep);
  recipe_.schedule->after_backward(*this);
  for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  return total;
}

void RecipeTraining::update_all() {
  for (const auto& transform : recipe_.gradient_transforms)
    if (!transform->apply(parameters_)) return;
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  update(tensors);
}

void RecipeTraining::update(const std::vector<at::Tensor>& parameters) {
  UpdateScope scope;
  at::NoGradGuard no_grad;
  for (const auto& around : recipe_.around_update) around->before(parameters);
  recipe_.update_rule->update(
      parameters, recipe_.kernel_grouping.value_or(recipe_.schedule->default_grouping()));
  for (auto around = recipe_.around_update.rbegin(); around != recipe_.around_update.rend();
       ++around) {
    (*around)->after(parameters);
  }
}

}  // namespace peakbench::worker
