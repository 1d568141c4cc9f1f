#include "worker/recipe_training.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <unordered_map>

#include "peakbench/errors.h"
#include "peakbench/observer.h"
#include "worker/changes.h"
#include "worker/contributions.h"
#include "worker/engine.h"
#include "worker/watched_rules.h"
#include "worker/weights_on_demand.h"

namespace peakbench::worker {
namespace {

namespace autograd = torch::autograd;
using Callbacks = std::vector<Training::GradientCallback>;

// LibTorch has one slot a tensor for this hook; the recipe's callbacks share it.
class SharedGradientHook final : public autograd::PostAccumulateGradHook {
 public:
  SharedGradientHook(Parameter parameter, const torch::nn::Module& owner,
                     const Callbacks& callbacks, const bool& last_micro_batch)
      : parameter_(std::move(parameter)),
        owner_(owner),
        callbacks_(callbacks),
        last_micro_batch_(last_micro_batch) {}

  void operator()(const autograd::Variable&) override {
    ModuleScope scope(owner_);  // what happens here belongs to the parameter's module
    at::NoGradGuard no_grad;
    for (const auto& callback : callbacks_) callback(parameter_, last_micro_batch_);
  }

 private:
  Parameter parameter_;
  const torch::nn::Module& owner_;
  const Callbacks& callbacks_;
  const bool& last_micro_batch_;
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

bool has_gradient_in(const std::vector<Parameter>& parameters) {
  return std::ranges::any_of(parameters,
                             [](const Parameter& one) { return one.tensor.grad().defined(); });
}

template <typename Placed>
void sort_by_place(std::vector<Placed>& list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

RecipeTraining::RecipeTraining(Model& model, Recipe recipe, Contributions* contributions,
                               Owner model_owner)
    : model_(model),
      recipe_(std::move(recipe)),
      contributions_(contributions),
      model_owner_(std::move(model_owner)) {
  if (recipe_.update_rule == nullptr || recipe_.schedule == nullptr) {
    throw std::logic_error(
        "the recipe has no update rule or no schedule: the baseline must be applied first");
  }
  if (recipe_.base_weights) recipe_.base_weights->apply(model_);
  make_waiting_weights(model_.module());
  if (recipe_.adapters) recipe_.adapters->apply(model_);
  freeze();
  collect_parameters();
  set_weights(model_.module());
  install_block_wrappers();
  if (observer() != nullptr) {
    state_names_.emplace(parameters_);
    tally_.emplace(parameters_);
  }
  wrap_update_rule();
  collect_gradient_hooks();
  recipe_.schedule->prepare(*this);
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
  sort_by_place(recipe_.block_wrappers);
  std::vector<std::shared_ptr<BlockWrapper>> wrappers;
  for (const auto& [place, wrapper] : recipe_.block_wrappers) wrappers.push_back(wrapper);
  model_.set_block_wrappers(wrappers);
  model_.set_embedding_wrappers(recipe_.embedding_wrappers);
}

void RecipeTraining::wrap_update_rule() {
  sort_by_place(recipe_.update_rule_wrappers);
  const auto named = [&](std::shared_ptr<UpdateRule> rule) -> std::shared_ptr<UpdateRule> {
    if (!state_names_) return rule;
    return std::make_shared<NamedRule>(std::move(rule), *state_names_);
  };
  rule_ = recipe_.update_rule;
  if (tally_) rule_ = std::make_shared<TalliedRule>(std::move(rule_), *tally_);
  rule_ = named(std::move(rule_));
  auto& wrappers = recipe_.update_rule_wrappers;
  for (auto wrapper = wrappers.rbegin(); wrapper != wrappers.rend(); ++wrapper)
    rule_ = named(wrapper->second->wrap(rule_));
}

// The gradient is counted and has its name before anybody is called, and its name again where it
// was exchanged.
void RecipeTraining::collect_gradient_hooks() {
  if (tally_)
    gradient_callbacks_.emplace_back(
        [this](const Parameter& parameter, bool) { tally_->note_gradient(parameter); });
  const auto name = [](const Parameter& parameter, bool) {
    observer()->name_storage(parameter.tensor.grad(), StorageRole::kGradient, parameter.name);
  };
  if (observer() != nullptr) gradient_callbacks_.emplace_back(name);
  sort_by_place(recipe_.gradient_hooks);
  for (const auto& [place, hook] : recipe_.gradient_hooks) {
    gradient_callbacks_.emplace_back(
        [hook](const Parameter& parameter, bool last) { hook->on_gradient(parameter, last); });
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
                              gradient_callbacks_, last_micro_batch_));
  }
}

void RecipeTraining::on_gradient(GradientCallback callback) {
  const Owner* owner = current_owner();
  if (owner != nullptr && !callback)
    throw PluginError(owner->path + ": " + owner->id +
                      " registers an empty function with on_gradient");
  if (owner != nullptr && contributions_ != nullptr) {
    callback = [&hook = contributions_->add_hook(*owner), inner = std::move(callback)](
                   const Parameter& parameter, bool last) {
      hook.calls.fetch_add(1, std::memory_order_relaxed);
      call_plugin(hook.owner, "on_gradient", [&] { inner(parameter, last); });
    };
  }
  gradient_callbacks_.push_back(std::move(callback));
}

void RecipeTraining::set_trainable(const Parameter& parameter, bool trainable) {
  const auto* impl = parameter.tensor.unsafeGetTensorImpl();
  const auto known = [&](const Parameter& one) { return one.tensor.unsafeGetTensorImpl() == impl; };
  if (std::none_of(parameters_.begin(), parameters_.end(), known))
    throw std::logic_error("set_trainable is given " + parameter.name +
                           ", which is none of parameters()");
  if (paused_.contains(impl) == trainable && steps_ > 0) need_changing_set();
  if (trainable)
    paused_.erase(impl);
  else
    paused_.insert(impl);
  if (const Owner* owner = current_owner(); owner != nullptr && contributions_ && !trainable)
    contributions_->note_unlike_baseline(
        *owner, "pauses " + parameter.name + ", which the baseline trains");
  parameter.tensor.set_requires_grad(trainable);
}

at::Tensor RecipeTraining::forward(const MicroBatch& part, const std::vector<MicroBatch>& parts) {
  std::vector<std::shared_ptr<void>> contexts;
  for (const auto& context : recipe_.step_contexts) contexts.push_back(context->enter_forward());
  std::vector<std::unique_ptr<SavedTensorHooksScope>> hooks;
  for (const auto& hook : recipe_.saved_tensor_hooks) {
    hooks.push_back(std::make_unique<SavedTensorHooksScope>(hook));
  }
  at::Tensor loss;
  {
    const Batch batch = embedded(part.batch);
    at::Tensor hidden =
        call_plugin(model_owner_, "hidden_states", [&] { return model_.hidden_states(batch); });
    loss = recipe_.loss_head ? recipe_.loss_head->loss(model_, hidden, batch)
                             : call_plugin(model_owner_, "loss",
                                           [&] { return model_.loss(std::move(hidden), batch); });
    loss = with_auxiliary(std::move(loss), batch);
  }
  while (!hooks.empty()) hooks.pop_back();  // a stack: last in, first out
  while (!contexts.empty()) contexts.pop_back();
  return weighted(loss, part, parts, model_.loss_reduction());
}

// Labels as the wrappers around the embeddings make them, the innermost first.
Batch RecipeTraining::embedded(Batch batch) {
  const auto& wrappers = recipe_.embedding_wrappers;
  for (auto one = wrappers.rbegin(); one != wrappers.rend() && batch.target.defined(); ++one)
    batch.target = (*one)->target(batch.target);
  return batch;
}

at::Tensor RecipeTraining::with_auxiliary(at::Tensor loss, const Batch& batch) {
  const at::Tensor more = call_plugin(model_owner_, "auxiliary_loss", [&] {
    auto made = model_.auxiliary_loss(batch);
    if (made.defined() && made.dim() != 0)
      throw std::logic_error("it must return a scalar tensor, or an undefined one");
    return made;
  });
  return more.defined() ? loss + more : loss;
}

void RecipeTraining::enter(trace::Phase phase, const PhaseListener& on_phase) {
  on_phase(phase_ = phase);
}

at::Tensor RecipeTraining::forward_backward(const std::vector<MicroBatch>& parts,
                                            const PhaseListener& on_phase) {
  at::Tensor total;
  for (const MicroBatch& part : parts) {
    need_first_pass();
    if (tally_) tally_->begin_pass();
    if (phase_ != trace::Phase::kForward) enter(trace::Phase::kForward, on_phase);
    last_micro_batch_ = &part == &parts.back();
    const at::Tensor loss = forward(part, parts);
    at::Tensor objective = loss;
    for (const auto& transform : recipe_.loss_transforms) objective = transform->apply(objective);
    enter(trace::Phase::kBackward, on_phase);
    autograd::backward({objective}, {});
    objective.reset();
    if (total.defined()) {
      at::NoGradGuard no_grad;
      total.add_(loss.detach());
    } else {
      total = loss.detach();
    }
  }
  enter(trace::Phase::kOptimizerStep, on_phase);
  return total;
}

void RecipeTraining::begin_step() {
  skipped_ = updated_in_backward_ = false;
  if (tally_) tally_->begin_step(recipe_.micro_batches);
  for (const auto& listener : recipe_.step_listeners) listener->on_step_begin(*this, steps_);
}

at::Tensor RecipeTraining::step(const Batch& batch, const PhaseListener& on_phase) {
  enter(trace::Phase::kForward, on_phase);
  begin_step();
  std::vector<std::shared_ptr<void>> contexts;
  for (const auto& context : recipe_.step_contexts) contexts.push_back(context->enter_step());
  at::Tensor loss = run(parts_of(batch), on_phase);
  if (phase_ != trace::Phase::kOptimizerStep) enter(trace::Phase::kOptimizerStep, on_phase);
  recipe_.schedule->after_backward(*this);
  skipped_some_ = skipped_some_ || skipped_;
  if (tally_) tally_->end_step(skipped_);
  need_equal_passes();
  for (const Parameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  while (!contexts.empty()) contexts.pop_back();
  ++steps_;
  return loss;
}

std::vector<MicroBatch> RecipeTraining::parts_of(const Batch& batch) {
  auto parts = split(batch, recipe_.micro_batches);
  if (shares_by_tokens_ && parts.size() > 1) {
    const at::NoGradGuard no_grad;
    auto counted = parts;
    for (MicroBatch& part : counted) part.batch = embedded(part.batch);
    worker::share_by_tokens(counted, embedded(batch), model_.output_head().value());
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].share = counted[i].share;
  }
  return parts;
}

at::Tensor RecipeTraining::run(const std::vector<MicroBatch>& parts,
                               const PhaseListener& on_phase) {
  const auto once = [&] { return forward_backward(parts, on_phase); };
  if (!recipe_.step_runner) return once();
  const ChangeWatch watch(parameters_, listens());
  at::Tensor loss = recipe_.step_runner->run(*this, once, steps_);
  runner_changed_ = runner_changed_ || watch.changed_any();
  return loss;
}

// Where time is measured only until something has changed: in the first step, as a rule.
bool RecipeTraining::listens() const {
  return observer() != nullptr || !(rule_changed_ || runner_changed_);
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
  update(parameters_);
}

void RecipeTraining::update(const std::vector<Parameter>& parameters) {
  if (phase_ == trace::Phase::kBackward) {
    need_capability();
    updated_in_backward_ = true;
  }
  asked_to_update_ = true;
  UpdateScope scope;
  at::NoGradGuard no_grad;
  rule_given_ = rule_given_ || has_gradient_in(parameters);
  if (tally_) tally_->note_update(parameters);
  const ChangeWatch watch(parameters, listens());
  rule_->update(parameters, recipe_.kernel_grouping.value_or(recipe_.schedule->default_grouping()));
  note_updated(parameters, watch);
}

void RecipeTraining::note_updated(const std::vector<Parameter>& parameters,
                                  const ChangeWatch& watch) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!watch.changed(i)) continue;
    rule_changed_ = true;
    if (tally_) tally_->note_change(parameters[i]);
  }
}

void RecipeTraining::name_state() const {
  if (state_names_) state_names_->name(*rule_, *observer());
}

}  // namespace peakbench::worker
