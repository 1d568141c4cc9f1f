// A recipe describes a training step, as slots and wrappers.
// - The baseline fills every slot that must be filled. A strategy replaces slots or adds wrappers.
// - A slot has one owner. Conflicts are found from the manifests before anything runs.
// - There may be any number of wrappers. Each has a fixed place, whatever order the user types.
// - Strategies only fill the recipe. The worker executes it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/embedding.h"
#include "peakbench/memory.h"
#include "peakbench/model.h"
#include "peakbench/saved_tensor_hooks.h"
#include "peakbench/update_rule.h"

namespace peakbench {

class Training;

// Identifies one run of a micro-batch through the model, with or without backward. A pass runs all
// micro-batches of the step's batch.
struct Pass {
  std::int64_t index = 0;        // number of the pass in the step, from 0
  bool last = true;              // no other pass follows in this step
  std::int64_t micro_batch = 0;  // number of the micro-batch in the pass, from 0
  bool last_micro_batch = true;  // the gradients of the pass are complete with this micro-batch
};

// Slot `schedule`: decides when updates happen.
class Schedule : public HoldsMemory {
 public:
  // Called once before the first step, when the trainable parameters are known.
  virtual void prepare(Training& training) {}
  // Called in each step after the backward of the last micro-batch, in the phase optimizer_step.
  virtual void after_backward(Training& training) = 0;
  // Returns how tensors are grouped if no strategy takes the slot `kernel_grouping`.
  virtual KernelGrouping default_grouping() const { return KernelGrouping::kForeach; }
};

// Slot `loss_head`: computes the loss from the final hidden states. Null means the model's own
// loss. The model's auxiliary loss is added to either.
class LossHead : public HoldsMemory {
 public:
  // Returns the loss of a micro-batch, a scalar, in the phase forward.
  virtual at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) = 0;
};

// The options with which a step runner asks for a pass.
struct PassOptions {
  // True: no other pass follows in this step. Hooks and contexts receive the value (Pass::last). If
  // the runner's passes contradict the value, the case ends as `crashed`.
  bool last = true;
  // Computes the loss of this pass in place of the recipe's head, without the model's auxiliary
  // loss. Null: the recipe's head computes it.
  LossHead* loss_head = nullptr;
};

// Runs the step's batch through the model, as often as a step runner asks. The worker handles
// phases, contexts, micro-batches and hooks. A call throws std::logic_error if it begins a pass
// after the step's last.
class Passes {
 public:
  virtual ~Passes() = default;
  // Runs forward and loss of every micro-batch, without backward. Returns the loss of the batch, a
  // scalar.
  // - Without `grad`, autograd saves nothing.
  // - With `grad`, the loss has a graph, for `backward` or for the runner's own
  //   torch::autograd::grad. The activations of all micro-batches are alive at the same time.
  virtual at::Tensor forward(bool grad, const PassOptions& options) = 0;
  at::Tensor forward(bool grad) { return forward(grad, {}); }
  // Runs backward from a loss that `forward(true)` returned. The recipe's `loss_transforms` change
  // the loss first. Gradients add up in .grad(). Throws std::logic_error before any forward.
  virtual void backward(const at::Tensor& loss) = 0;
  // Runs forward and backward of one micro-batch after the other. Gradients add up in .grad().
  // Returns the loss of the batch, without a graph.
  virtual at::Tensor forward_backward(const PassOptions& options) = 0;
  at::Tensor forward_backward() { return forward_backward({}); }
};

// Slot `step_runner`: decides how often forward and backward run in a step. Null: they run once.
class StepRunner : public HoldsMemory {
 public:
  // Runs the passes of a step, and returns the loss to report. `step` counts from 0.
  // - The runner runs at least one pass in every step. If the manifest declares `replays_steps`, a
  //   pass in the first step is enough.
  // - The runner leaves gradients in .grad() for the schedule's update. Alternatively, it changes
  //   the parameters itself (Training::count_update).
  // - Work before the first pass belongs to the phase forward. Work after a pass belongs to the
  //   phase optimizer_step.
  // - The runner asks for each pass but the step's last with {.last = false}.
  virtual at::Tensor run(Training& training, Passes& passes, std::int64_t step) = 0;
};

// Slots `base_weights` and `adapters`: change the built model before its parameters are collected.
class ModelTransform : public HoldsMemory {
 public:
  virtual void apply(Model& model) = 0;  // may throw Unsupported
};

// Wrapper around a step or its forward. Each function is called when its region begins, and the
// object that it returns is released when the region ends.
class StepContext : public HoldsMemory {
 public:
  // Surrounds the whole step: forward, backward and update.
  virtual std::shared_ptr<void> enter_step() { return nullptr; }
  // Surrounds forward and loss of each micro-batch, on the thread that runs them. Autocast uses it.
  // A recomputation in backward is outside the region, so checkpointing restores autocast itself.
  virtual std::shared_ptr<void> enter_forward(const Pass& pass) { return nullptr; }
};

// Wrapper that is called when a step begins, for training that changes from step to step.
class StepListener : public HoldsMemory {
 public:
  // `step` counts from 0. The listener may call Training::set_trainable and Training::forget.
  virtual void on_step_begin(Training& training, std::int64_t step) = 0;
};

// Wrapper that changes the loss before backward, for example for loss scaling. The reported loss
// does not change.
class LossTransform : public HoldsMemory {
 public:
  virtual at::Tensor apply(const at::Tensor& loss, const Pass& pass) = 0;  // scalar -> scalar
};

// Wrapper that is called for each gradient as soon as backward has it, before a schedule may update
// from it.
class GradientHook : public HoldsMemory {
 public:
  // Called on the thread that runs backward, with grad mode off.
  // - If `pass.last_micro_batch` is true, the gradient of the pass is complete. If `pass.last` is
  //   true as well, no other gradient of this parameter follows in the step.
  // - The hook may replace the gradient (`tensor.mutable_grad() = ...`) or remove it (`.reset()`).
  //   The old gradient is then freed at once.
  virtual void on_gradient(const Parameter& parameter, const Pass& pass) = 0;
};

// The places of gradient hooks, in the order in which they run.
enum class GradientPlace { kReduce, kOffload };

// Wrapper that changes all gradients before an update, for operations that need all of them, such
// as unscaling and clipping.
class GradientTransform : public HoldsMemory {
 public:
  // Returns false to skip the update of this step, as loss scaling does after an infinite gradient.
  // Later transforms are not called then.
  virtual bool apply(const std::vector<Parameter>& parameters) = 0;
};

// The places of block wrappers, outermost first. The order applies to the wrappers around blocks,
// and separately to the wrappers around each part.
enum class BlockPlace { kOffload, kCheckpoint };

struct Recipe {
  // Slots.
  std::shared_ptr<ModelTransform> base_weights;  // null: the weights stay as built
  std::shared_ptr<ModelTransform> adapters;      // null: no adapters
  std::shared_ptr<UpdateRule> update_rule;
  std::optional<KernelGrouping> kernel_grouping;  // unset: the schedule's default
  std::shared_ptr<Schedule> schedule;
  std::int64_t micro_batches = 1;
  std::shared_ptr<LossHead> loss_head;
  std::shared_ptr<StepRunner> step_runner;

  // Wrappers.
  //
  // If a function of `freezing` returns true, the parameter is never trained.
  std::vector<std::function<bool(const Parameter&)>> freezing;
  std::vector<std::shared_ptr<EmbeddingWrapper>> embedding_wrappers;  // outermost first
  std::vector<std::pair<BlockPlace, std::shared_ptr<BlockWrapper>>> block_wrappers;
  // The saved-tensor hooks are active during forward and loss.
  std::vector<std::pair<SavedTensorPlace, std::shared_ptr<SavedTensorHooks>>> saved_tensor_hooks;
  std::vector<std::shared_ptr<StepContext>> step_contexts;
  std::vector<std::shared_ptr<StepListener>> step_listeners;
  std::vector<std::shared_ptr<LossTransform>> loss_transforms;
  std::vector<std::pair<GradientPlace, std::shared_ptr<GradientHook>>> gradient_hooks;
  std::vector<std::shared_ptr<GradientTransform>> gradient_transforms;
  std::vector<std::pair<UpdatePlace, std::shared_ptr<UpdateRuleWrapper>>> update_rule_wrappers;
};

// The training that executes a recipe, as schedules, runners and listeners see it.
class Training {
 public:
  virtual ~Training() = default;
  // Returns every parameter that some step may train, in the module's order.
  virtual const std::vector<Parameter>& parameters() const = 0;
  virtual const Recipe& recipe() const = 0;
  // Applies the gradient transforms, then updates all parameters that have a gradient once.
  virtual void update_all() = 0;
  // Updates these parameters once, with the recipe's rule and grouping. The trace marks the update
  // as `in_update`.
  virtual void update(const std::vector<Parameter>& parameters) = 0;
  // Registers a callback for each time that backward has a parameter's gradient. Schedules call
  // this in `prepare`. The callback runs after the recipe's gradient hooks, and in the same way: on
  // the thread that runs backward, with grad mode off.
  using GradientCallback = std::function<void(const Parameter& parameter, const Pass& pass)>;
  virtual void on_gradient(GradientCallback callback) = 0;
  // Reports that a step runner has changed the parameters itself, and that this is the step's
  // update. Runners call it in `run`; elsewhere it throws std::logic_error. The call is not needed
  // for changes by ATen's operators, which the worker detects.
  virtual void count_update() = 0;
  // Sets whether this parameter is trained from this step on. Listeners call it in `on_step_begin`.
  // - A parameter that is not trained has no gradient. Its optimizer state stays until `forget`.
  // - Throws std::logic_error if the parameter is not in parameters().
  // - The manifest must declare `changes_trained_set` for changes after the first step.
  virtual void set_trainable(const Parameter& parameter, bool trainable) = 0;
  // Drops the state that the recipe's rule and its wrappers keep for this parameter.
  virtual void forget(const Parameter& parameter) = 0;
};

}  // namespace peakbench
