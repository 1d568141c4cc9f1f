// What of a recipe that is carried out ends its case, and what is said of its steps.
#include "worker/contributions.h"
#include "worker/no_effect.h"
#include "worker/recipe_training.h"

namespace peakbench::worker {

// A schedule that updates inside backward without saying so would pass conflicts by.
void RecipeTraining::need_capability() const {
  const Owner* owner = current_owner();
  if (owner == nullptr || contributions_ == nullptr) return;
  if (contributions_->has_capability(*owner, "updates_in_backward")) return;
  throw PluginError(owner->path + ": " + owner->id +
                    " updates inside backward, which its manifest does not declare: put "
                    "\"updates_in_backward\" into \"capabilities\" of plugin.json");
}

// What a replay repeats is decided with its first step.
void RecipeTraining::need_changing_set() const {
  const Owner* owner = current_owner();
  if (owner == nullptr || contributions_ == nullptr) return;
  if (contributions_->has_capability(*owner, "changes_trained_set")) return;
  throw PluginError(owner->path + ": " + owner->id +
                    " changes which parameters are trained after the first step, which its "
                    "manifest does not declare: put \"changes_trained_set\" into \"capabilities\" "
                    "of plugin.json");
}

// Of a step that is to be replayed there are several, to warm up and to capture: where they train
// different parameters, somebody decides on the host.
void RecipeTraining::need_equal_passes() const {
  if (!tally_ || tally_->unlike_first_pass().empty() || contributions_ == nullptr) return;
  if (!contributions_->has_capability("replays_steps")) return;
  const Contribution* decides = contributions_->leaving_blocks_out();
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
