// Carries a recipe out: slots and wrappers at their fixed places, one step at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "peakbench/recipe.h"
#include "trace/trace.h"
#include "worker/code_place.h"
#include "worker/engine.h"
#include "worker/losses.h"
#include "worker/plugin_call.h"
#include "worker/step_tally.h"

namespace peakbench::worker {

class ChangeWatch;
class Contributions;
class StepPasses;

class RecipeTraining final : public Training {
 public:
  // Applies the model transforms, freezes, installs block wrappers and hooks. May throw
  // Unsupported. `contributions`, where given, learns of hooks on gradients, and says which
  // schedules may update inside backward; it must outlive this. `model_owner` is named when the
  // model's own code fails.
  explicit RecipeTraining(Model& model, Recipe recipe, Contributions* contributions = nullptr,
                          Owner model_owner = {});
  ~RecipeTraining() override;

  using PhaseListener = std::function<void(trace::Phase)>;
  // One step: forward and backward of each micro-batch, the schedule, gradients to none. Returns
  // the loss, a scalar tensor on the device: of the whole batch. Throws PluginError when forward
  // and backward run again although parameters were updated inside backward already.
  at::Tensor step(const Batch& batch, const PhaseListener& on_phase);

  // The model's loss is a mean over tokens: micro-batches count by theirs.
  void share_by_tokens() { shares_by_tokens_ = true; }

  // Throws PluginError if a parameter's requires_grad contradicts the recipe's freezing: other code
  // changed it.
  void check_frozen() const;

  // After the steps. Throws NoEffect where none of them changed a parameter, and no gradient
  // transform had asked for that; or where the update rule was given gradients and changed nothing.
  void need_updates() const;
  // The rule was never given a gradient: the step runner changes the parameters itself.
  bool runner_updates() const { return runner_changed_ && !rule_given_; }
  // Differences of the steps from the baseline's, as far as they are visible without values; else
  // empty. Only with an observer.
  std::string unlike_baseline() const;
  // The trained parameters that some step gave no gradient to. Only where there is an observer.
  std::vector<std::string> without_gradient() const;

  // Training.
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  const Recipe& recipe() const override { return recipe_; }
  void update_all() override;
  void update(const std::vector<Parameter>& parameters) override;
  void on_gradient(GradientCallback callback) override;
  void count_update() override;
  void set_trainable(const Parameter& parameter, bool trainable) override;
  void forget(const Parameter& parameter) override { rule_->forget(parameter.tensor); }

  // Names the optimizer's state that exists now to the observer, where there is one, and what the
  // recipe's parts hold besides (visit_memory).
  void name_state() const;

 private:
  friend StepPasses;

  void freeze();
  void collect_parameters();
  void install_block_wrappers();
  void chain_saved_tensor_hooks();
  void wrap_update_rule();
  void collect_gradient_hooks();
  void install_gradient_hooks();
  Batch embedded(Batch batch);
  at::Tensor auxiliary(const Batch& batch);  // undefined where the model has none
  // `head`: null for the model's own loss.
  at::Tensor forward(const MicroBatch& part, const std::vector<MicroBatch>& parts, LossHead* head);
  void enter(trace::Phase phase, const PhaseListener& on_phase);
  void begin_backward();
  void begin_step();
  void name_gradients() const;
  void name_memory() const;
  at::Tensor run(const std::vector<MicroBatch>& parts, const PhaseListener& on_phase);
  std::vector<MicroBatch> parts_of(const Batch& batch);
  bool listens() const;
  void note_updated(const std::vector<Parameter>& parameters, const ChangeWatch& watch);
  void need_first_pass() const;
  // Of the strategy that is called: others, or the plan, rest on what its manifest says.
  void need_capability(const std::string& capability, const std::string& does) const;
  void need_equal_passes() const;
  std::string owner_of(const char* slot) const;

  Model& model_;
  Recipe recipe_;
  Contributions* contributions_;
  Owner model_owner_;
  bool shares_by_tokens_ = false;
  std::vector<Parameter> parameters_;
  std::unordered_set<const at::TensorImpl*> paused_;  // by set_trainable
  std::shared_ptr<UpdateRule> rule_;                  // with its wrappers
  std::optional<StateNames> state_names_;             // where an observer wants them
  std::optional<StepTally> tally_;                    // as well
  std::optional<RegisteredParameters> registered_;    // as well
  std::vector<std::shared_ptr<UpdateRule>> rules_;    // as well: the recipe's and those around it
  std::shared_ptr<SavedTensorChain> saved_tensor_hooks_;  // null: none
  std::optional<ModulePaths> module_paths_;               // where saved-tensor hooks ask
  std::vector<GradientCallback> gradient_callbacks_;
  trace::Phase phase_ = trace::Phase::kBuild;
  std::int64_t steps_ = 0;  // begun
  // Of the step that runs.
  Pass pass_;
  bool skipped_ = false, updated_in_backward_ = false, runner_runs_ = false;
  // Of all steps: an update was asked for, or a transform wanted none; the rule was given a
  // gradient; it, or the step runner, changed a parameter.
  bool asked_to_update_ = false, skipped_some_ = false, rule_given_ = false;
  bool rule_changed_ = false, runner_changed_ = false;
};

}  // namespace peakbench::worker
