#include "worker/recipe_step.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <stdexcept>
#include <unordered_map>

#include "peakbench/observer.h"
#include "worker/contributions.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

StepPasses::StepPasses(RecipeTraining& training, const std::vector<MicroBatch>& parts,
                       const RecipeTraining::PhaseListener& on_phase)
    : training_(training), parts_(parts), on_phase_(on_phase) {}

void StepPasses::begin(const PassOptions& options) {
  if (last_was_run_)
    throw std::logic_error(
        "a pass follows one that was the step's last: ask for each pass but the last with {.last = "
        "false}");
  last_was_run_ = options.last;
  training_.pass_ = {.index = begun_++, .last = options.last};
}

// Phase forward, of one micro-batch.
at::Tensor StepPasses::run_forward(std::size_t micro_batch, const PassOptions& options) {
  if (training_.phase_ != trace::Phase::kForward)
    training_.enter(trace::Phase::kForward, on_phase_);
  training_.pass_.micro_batch = static_cast<std::int64_t>(micro_batch);
  training_.pass_.last_micro_batch = micro_batch + 1 == parts_.size();
  LossHead* head = options.loss_head ? options.loss_head : training_.recipe_.loss_head.get();
  return training_.forward(parts_[micro_batch], parts_, head);
}

at::Tensor StepPasses::forward(bool grad, const PassOptions& options) {
  begin(options);
  const at::AutoGradMode mode(grad);
  if (grad) training_.begin_backward();
  at::Tensor total;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const at::Tensor loss = run_forward(i, options);
    if (!total.defined())
      total = grad ? loss : loss.detach();
    else if (grad)
      total = total + loss;
    else
      total.add_(loss);
  }
  training_.enter(trace::Phase::kOptimizerStep, on_phase_);
  return total;
}

// From the loss, changed by the recipe's transforms.
void StepPasses::run_backward(at::Tensor objective) {
  for (const auto& transform : training_.recipe_.loss_transforms)
    objective = transform->apply(objective, training_.pass_);
  training_.enter(trace::Phase::kBackward, on_phase_);
  torch::autograd::backward({objective}, {});
}

void StepPasses::backward(const at::Tensor& loss) {
  if (begun_ == 0) throw std::logic_error("backward is asked for before any forward");
  training_.need_first_pass();
  run_backward(loss);
  training_.enter(trace::Phase::kOptimizerStep, on_phase_);
}

at::Tensor StepPasses::forward_backward(const PassOptions& options) {
  begin(options);
  const at::AutoGradMode mode(true);
  at::Tensor total;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    training_.begin_backward();
    const at::Tensor loss = run_forward(i, options);
    run_backward(loss);
    if (total.defined()) {
      const at::NoGradGuard no_grad;
      total.add_(loss.detach());
    } else {
      total = loss.detach();
    }
  }
  training_.enter(trace::Phase::kOptimizerStep, on_phase_);
  return total;
}

// Hooks on gradients: LibTorch has one slot a tensor for them, which the recipe's share.

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
  if (owner != nullptr && !callback) refuse(*owner, "registers an empty function with on_gradient");
  if (owner != nullptr && contributions_ != nullptr) {
    callback = [&hook = contributions_->add_hook(*owner), inner = std::move(callback)](
                   const Parameter& parameter, const Pass& pass) {
      hook.calls.fetch_add(1, std::memory_order_relaxed);
      call_plugin(hook.owner, "on_gradient", [&] { inner(parameter, pass); });
    };
  }
  gradient_callbacks_.push_back(std::move(callback));
}

// What of a recipe that is carried out ends its case, and what is said of its steps.

void RecipeTraining::need_capability(const std::string& capability, const std::string& does) const {
  const Owner* owner = current_owner();
  if (owner == nullptr || contributions_ == nullptr) return;
  if (contributions_->has_capability(*owner, capability)) return;
  refuse(*owner, does + ", which its manifest does not declare: put \"" + capability +
                     "\" into \"capabilities\" of plugin.json");
}

// Of a step that is to be replayed there are several, to warm up and to capture: where they train
// different parameters, somebody decides on the host.
void RecipeTraining::need_equal_passes() const {
  if (!tally_ || tally_->unlike_first_pass().empty() || contributions_ == nullptr) return;
  if (!contributions_->has_capability("replays_steps")) return;
  const Contribution* decides = contributions_->first_that(&Contribution::left_block_out);
  const std::string who = decides == nullptr ? "a strategy of the stack" : decides->owner.id;
  const std::string path = decides == nullptr ? "" : decides->owner.path + ": ";
  throw PluginError(
      path + who + " decides on the host what a step runs: " + tally_->unlike_first_pass() +
      " got a gradient in one pass of a step and none in another, and " + owner_of("step_runner") +
      " repeats what the first step decided. Put \"decides_on_host\" into "
      "\"capabilities\" of its plugin.json, and the two are never stacked");
}

std::string RecipeTraining::owner_of(const char* slot) const {
  const Contribution* contribution =
      contributions_ == nullptr ? nullptr : contributions_->slot(slot);
  return contribution == nullptr ? "the recipe" : contribution->owner.id;
}

// A parameter that was updated inside backward is updated again by a second backward of the step.
void RecipeTraining::need_first_pass() const {
  if (!updated_in_backward_) return;
  const char* slot = recipe_.step_runner ? "step_runner" : "micro_batches";
  const Contribution* again = contributions_ == nullptr ? nullptr : contributions_->slot(slot);
  const std::string path = again == nullptr ? "" : again->owner.path + ": ";
  throw PluginError(path + owner_of(slot) + " runs forward and backward again in a step in which " +
                    owner_of("schedule") +
                    " has updated parameters inside backward: they would be updated twice. Put "
                    "\"needs_all_gradients\" into \"capabilities\" of its plugin.json, and the "
                    "two are never stacked");
}

void RecipeTraining::need_updates() const {
  if (rule_changed_ || skipped_some_ || runner_updates()) return;
  const std::string steps = std::to_string(steps_) + (steps_ == 1 ? " step" : " steps");
  const std::string nothing = "no update in " + steps + ": ";
  if (!asked_to_update_)
    throw NoEffect(nothing + "the schedule of " + owner_of("schedule") +
                   " called neither update nor update_all");
  throw NoEffect(nothing + "the update rule of " + owner_of("update_rule") +
                 (rule_given_ ? " was called and changed no parameter"
                              : " was given no parameter that has a gradient"));
}

std::string RecipeTraining::unlike_baseline() const {
  const std::string seen = contributions_ == nullptr ? "" : contributions_->unlike_baseline();
  return seen.empty() && tally_ ? tally_->unlike_baseline() : seen;
}

std::vector<std::string> RecipeTraining::without_gradient() const {
  return tally_ ? tally_->without_gradient() : std::vector<std::string>{};
}

void RecipeTraining::check_frozen() const {
  std::unordered_set<const at::TensorImpl*> trained;
  for (const Parameter& parameter : parameters_) {
    const auto* impl = parameter.tensor.unsafeGetTensorImpl();
    if (!paused_.contains(impl)) trained.insert(impl);
  }
  for (const auto& item : model_.module().named_parameters()) {
    const bool expected = trained.contains(item.value().unsafeGetTensorImpl());
    if (item.value().requires_grad() == expected) continue;
    throw PluginError("a strategy changed requires_grad of " + item.key() + " itself: it is " +
                      (expected ? "frozen now and was trained" : "trained now and was frozen") +
                      ". Use the recipe's `freezing`, which is decided before the first step, or "
                      "Training::set_trainable when a step begins");
  }
}

}  // namespace peakbench::worker
