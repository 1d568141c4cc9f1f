#include "worker/recipe_training.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "peakbench/errors.h"
#include "peakbench/observer.h"
#include "worker/micro_batches.h"
#include "worker/no_effect.h"
#include "worker/recipe_parts.h"

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

// Tells whether a parameter was changed, without reading it: by what every in-place operator counts
// up, and by where the data is, for those who exchange it.
struct Version {
  std::int64_t count = 0;
  const void* data = nullptr;
  bool operator==(const Version&) const = default;
};

Version version_of(const at::Tensor& tensor) {
  return {tensor._version(), tensor.has_storage() ? tensor.storage().data() : nullptr};
}

// Those that an update can change.
std::vector<at::Tensor> with_gradient(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& parameter : parameters)
    if (parameter.grad().defined()) found.push_back(parameter);
  return found;
}

}  // namespace

RecipeTraining::RecipeTraining(Model& model, Recipe recipe, RecipeParts* parts, Owner model_owner)
    : model_(model),
      recipe_(std::move(recipe)),
      parts_(parts),
      model_owner_(std::move(model_owner)) {
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
    state_names_.emplace(parameters_);
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
  const Owner* owner = current_owner();
  if (owner != nullptr && !callback)
    throw PluginError(owner->path + ": " + owner->id +
                      " registers an empty function with on_gradient");
  if (owner != nullptr && parts_ != nullptr) {
    callback = [&part = parts_->add_hook(*owner), inner = std::move(callback)](const Parameter& p) {
      part.calls.fetch_add(1, std::memory_order_relaxed);
      call_plugin(part.owner, "on_gradient", [&] { inner(p); });
    };
  }
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
    const at::Tensor hidden =
        call_plugin(model_owner_, "hidden_states", [&] { return model_.hidden_states(batch); });
    loss = recipe_.loss_head
               ? recipe_.loss_head->loss(model_, hidden, batch)
               : call_plugin(model_owner_, "loss", [&] { return model_.loss(hidden, batch); });
  }
  while (!hooks.empty()) hooks.pop_back();  // a stack: last in, first out
  while (!contexts.empty()) contexts.pop_back();
  return loss;
}

at::Tensor RecipeTraining::step(const Batch& batch, const PhaseListener& on_phase) {
  const auto enter = [&](trace::Phase phase) { on_phase(phase_ = phase); };
  asked_to_update_ = skipped_ = false;
  given_ = updated_ = 0;
  const auto parts = split(batch, recipe_.micro_batches);
  at::Tensor total;
  for (const MicroBatch& part : parts) {
    enter(trace::Phase::kForward);
    at::Tensor loss = weighted(forward(part.batch), part, parts, model_.loss_reduction());
    enter(trace::Phase::kBackward);
    autograd::backward({loss}, {});
    if (total.defined()) {
      at::NoGradGuard no_grad;
      total.add_(loss.detach());
    } else {
      total = loss.detach();
    }
  }
  enter(trace::Phase::kOptimizerStep);
  recipe_.schedule->after_backward(*this);
  need_an_update();
  for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  return total;
}

void RecipeTraining::name_gradients() const {
  if (observer() == nullptr) return;
  for (const Parameter& parameter : parameters_)
    observer()->name_storage(parameter.tensor.grad(), StorageRole::kGradient, parameter.name);
}

void RecipeTraining::update_all() {
  asked_to_update_ = true;
  for (const auto& transform : recipe_.gradient_transforms) {
    const bool updates = transform->apply(parameters_);
    name_gradients();  // a transform may put another tensor in a gradient's place
    if (updates) continue;
    skipped_ = true;
    return;
  }
  std::vector<at::Tensor> tensors;
  tensors.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  update(tensors);
}

void RecipeTraining::update(const std::vector<at::Tensor>& parameters) {
  if (phase_ == trace::Phase::kBackward) need_capability();
  asked_to_update_ = true;
  UpdateScope scope;
  at::NoGradGuard no_grad;
  for (const auto& around : recipe_.around_update) around->before(parameters);
  const auto changeable = with_gradient(parameters);
  given_ += changeable.size();
  std::vector<Version> before;
  before.reserve(changeable.size());
  for (const at::Tensor& parameter : changeable) before.push_back(version_of(parameter));
  recipe_.update_rule->update(
      parameters, recipe_.kernel_grouping.value_or(recipe_.schedule->default_grouping()));
  for (std::size_t i = 0; i < changeable.size(); ++i)
    if (version_of(changeable[i]) != before[i]) ++updated_;
  // Before anybody moves what the rule made; then where it was moved to.
  if (state_names_) state_names_->name(*recipe_.update_rule, parameters, *observer());
  for (auto around = recipe_.around_update.rbegin(); around != recipe_.around_update.rend();
       ++around) {
    (*around)->after(parameters);
  }
  if (state_names_ && !recipe_.around_update.empty())
    state_names_->name(*recipe_.update_rule, parameters, *observer());
}

void RecipeTraining::name_state() const {
  if (state_names_) state_names_->name(*recipe_.update_rule, *observer());
}

// A schedule that updates inside backward without saying so would pass conflicts by.
void RecipeTraining::need_capability() const {
  const Owner* owner = current_owner();
  if (owner == nullptr || parts_ == nullptr) return;
  if (parts_->has_capability(*owner, "updates_in_backward")) return;
  throw PluginError(owner->path + ": " + owner->id +
                    " updates inside backward, which its manifest does not declare: put "
                    "\"updates_in_backward\" into \"capabilities\" of plugin.json");
}

std::string RecipeTraining::owner_of(const char* slot) const {
  const Part* part = parts_ == nullptr ? nullptr : parts_->slot(slot);
  return part == nullptr ? "the recipe" : part->owner.id;
}

void RecipeTraining::need_an_update() const {
  if (updated_ > 0 || skipped_) return;
  if (!asked_to_update_)
    throw NoEffect("a step ended without an update: the schedule of " + owner_of("schedule") +
                   " called neither update nor update_all");
  throw NoEffect("a step ended without an update: the update rule of " + owner_of("update_rule") +
                 (given_ > 0 ? " was called and changed no parameter"
                             : " was given no parameter that has a gradient"));
}

void RecipeTraining::check_frozen() const {
  std::unordered_set<const at::TensorImpl*> trained;
  for (const Parameter& parameter : parameters_)
    trained.insert(parameter.tensor.unsafeGetTensorImpl());
  for (const auto& item : model_.module().named_parameters()) {
    const bool expected = trained.contains(item.value().unsafeGetTensorImpl());
    if (item.value().requires_grad() == expected) continue;
    throw PluginError("a strategy changed requires_grad of " + item.key() + " itself: it is " +
                      (expected ? "frozen now and was trained" : "trained now and was frozen") +
                      ". Use the recipe's `freezing`, which is decided before the first step");
  }
}

}  // namespace peakbench::worker
