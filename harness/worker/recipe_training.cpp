#include "worker/recipe_training.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "peakbench/errors.h"
#include "peakbench/observer.h"
#include "worker/changes.h"
#include "worker/contributions.h"
#include "worker/counting.h"
#include "worker/plugin_loader.h"
#include "worker/recipe_members.h"
#include "worker/recipe_step.h"

namespace peakbench::worker {
namespace {

Departures departures_of(const Contributions& contributions) {
  const auto at = [&](const char* place) { return contributions.departs_at(place); };
  return {.passes = at("step_runner"),
          .handing_over = at("schedule") || at("step_runner") || at("gradient_hooks"),
          .around_rule = at("update_rule_wrappers"),
          .rule = at("update_rule")};
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
  chain_saved_tensor_hooks();
  if (observer() != nullptr) {
    state_names_.emplace(parameters_);
    tally_.emplace(parameters_);
    registered_.emplace();
    if (contributions_ != nullptr) tally_->excuse(departures_of(*contributions_));
  }
  wrap_update_rule();
  sort_by_place(recipe_.gradient_hooks);
  collect_gradient_hooks();
  recipe_.schedule->prepare(*this);
  install_gradient_hooks();
}

RecipeTraining::~RecipeTraining() {
  for (const Parameter& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
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

void RecipeTraining::chain_saved_tensor_hooks() {
  if (recipe_.saved_tensor_hooks.empty()) return;
  saved_tensor_hooks_ = std::make_shared<SavedTensorChain>(recipe_.saved_tensor_hooks);
  if (saved_tensor_hooks_->asks_where()) module_paths_.emplace(model_.module());
}

void RecipeTraining::wrap_update_rule() {
  sort_by_place(recipe_.update_rule_wrappers);
  const auto named = [&](std::shared_ptr<UpdateRule> rule) -> std::shared_ptr<UpdateRule> {
    if (!state_names_) return rule;
    return std::make_shared<NamedRule>(std::move(rule), *state_names_);
  };
  rule_ = recipe_.update_rule;
  if (state_names_) rules_.push_back(rule_);
  if (tally_) rule_ = std::make_shared<TalliedRule>(std::move(rule_), *tally_);
  rule_ = named(std::move(rule_));
  auto& wrappers = recipe_.update_rule_wrappers;
  for (auto wrapper = wrappers.rbegin(); wrapper != wrappers.rend(); ++wrapper) {
    rule_ = wrapper->second->wrap(rule_);
    if (state_names_) rules_.push_back(rule_);
    rule_ = named(std::move(rule_));
  }
}

void RecipeTraining::set_trainable(const Parameter& parameter, bool trainable) {
  const auto* impl = parameter.tensor.unsafeGetTensorImpl();
  const auto known = [&](const Parameter& one) { return one.tensor.unsafeGetTensorImpl() == impl; };
  if (std::none_of(parameters_.begin(), parameters_.end(), known))
    throw std::logic_error("set_trainable is given " + parameter.name +
                           ", which is not in parameters()");
  // What a replay repeats is decided with its first step.
  if (paused_.contains(impl) == trainable && steps_ > 0)
    need_capability("changes_trained_set",
                    "changes which parameters are trained after the first step");
  if (trainable)
    paused_.erase(impl);
  else
    paused_.insert(impl);
  if (const Owner* owner = current_owner(); owner != nullptr && contributions_ && !trainable)
    contributions_->note_unlike_baseline(
        *owner, "pauses " + parameter.name + ", which the baseline trains");
  parameter.tensor.set_requires_grad(trainable);
}

at::Tensor RecipeTraining::forward(const MicroBatch& part, const std::vector<MicroBatch>& parts,
                                   LossHead* head) {
  std::vector<std::shared_ptr<void>> contexts;
  for (const auto& context : recipe_.step_contexts)
    contexts.push_back(context->enter_forward(pass_));
  std::optional<SavedTensorHooksScope> hooks;
  std::optional<FollowOperators> follow;
  if (saved_tensor_hooks_) hooks.emplace(saved_tensor_hooks_);
  if (module_paths_) follow.emplace();
  at::Tensor loss;
  {
    const Batch batch = embedded(part.batch);
    at::Tensor hidden =
        call_plugin(model_owner_, "hidden_states", [&] { return model_.hidden_states(batch); });
    loss = head ? head->loss(model_, hidden, batch) : call_plugin(model_owner_, "loss", [&] {
      return scalar(model_.loss(std::move(hidden), batch));
    });
    // Asked for in any case, as the model keeps its graph until then; a pass with a loss of its own
    // has that alone.
    const at::Tensor more = auxiliary(batch);
    if (more.defined() && head == recipe_.loss_head.get()) loss = loss + more;
    if (registered_) registered_->check(loss, model_.module(), batch, model_owner_, steps_);
  }
  follow.reset();
  hooks.reset();
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

at::Tensor RecipeTraining::auxiliary(const Batch& batch) {
  return call_plugin(model_owner_, "auxiliary_loss", [&] {
    auto made = model_.auxiliary_loss(batch);
    if (made.defined() && made.dim() != 0)
      throw std::logic_error("it must return a scalar tensor, or an undefined one");
    return made;
  });
}

// What a phase made and still holds has its name before the next begins.
void RecipeTraining::enter(trace::Phase phase, const PhaseListener& on_phase) {
  name_memory();
  on_phase(phase_ = phase);
}

// Forward and backward of a micro-batch are about to run.
void RecipeTraining::begin_backward() {
  need_first_pass();
  if (tally_) tally_->begin_pass();
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
  StepPasses passes(*this, parts, on_phase);
  if (!recipe_.step_runner) return passes.forward_backward();
  const ChangeWatch watch(parameters_, listens());
  runner_runs_ = true;
  at::Tensor loss = recipe_.step_runner->run(*this, passes, steps_);
  runner_runs_ = false;
  runner_changed_ = runner_changed_ || watch.changed_any();
  return loss;
}

void RecipeTraining::count_update() {
  if (!runner_runs_) throw std::logic_error("count_update is called outside of StepRunner::run");
  runner_changed_ = true;
  if (!tally_) return;
  for (const Parameter& parameter : parameters_) tally_->note_change(parameter);
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
    // Without saying so, it would pass conflicts by.
    need_capability("updates_in_backward", "updates inside backward");
    updated_in_backward_ = true;
  }
  asked_to_update_ = true;
  UpdateScope scope;
  at::NoGradGuard no_grad;
  rule_given_ = rule_given_ || has_gradient(parameters);
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
  name_memory();
}

void RecipeTraining::name_memory() const {
  if (observer() == nullptr) return;
  const auto name_all = [](const std::shared_ptr<HoldsMemory>& part) {
    if (part == nullptr) return;
    part->visit_memory([](const std::string& name, const at::Tensor& tensor, StorageRole role) {
      if (tensor.defined()) observer()->name_storage(tensor, role, name);
    });
  };
  for_each_slot([&](const char*, auto member) {
    if constexpr (kHoldsObject<std::decay_t<decltype(recipe_.*member)>>) name_all(recipe_.*member);
  });
  for_each_wrapper_list([&](const char*, auto member) {
    for (const auto& entry : recipe_.*member) name_all(object_of(entry));
  });
  for (const auto& rule : rules_) name_all(rule);
}

}  // namespace peakbench::worker
