// What a training step is made of. The baseline fills every slot that must be filled; a strategy
// replaces slots or adds wrappers. A slot has one owner (conflicts are found from manifests before
// anything runs); wrappers are many, each at a fixed place whatever the order of typing. Strategies
// only fill the recipe; the worker carries it out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/embedding.h"
#include "peakbench/model.h"
#include "peakbench/saved_tensor_hooks.h"
#include "peakbench/update_rule.h"

namespace peakbench {

class Training;

// Slot `schedule`: when updates happen.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // Once, before the first step, when the trainable parameters are known.
  virtual void prepare(Training& training) {}
  // After the backward of the step's last micro-batch; phase optimizer_step.
  virtual void after_backward(Training& training) = 0;
  // How tensors are grouped where no strategy takes the slot `kernel_grouping`.
  virtual KernelGrouping default_grouping() const { return KernelGrouping::kForeach; }
};

// Slot `step_runner`: how often forward and backward run in a step. Null: once.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Forward and backward of every micro-batch of the step; gradients add up in .grad(). Returns the
  // loss of the batch. Phases, contexts and hooks are the worker's; what the runner itself does in
  // between belongs to the phase optimizer_step.
  using ForwardBackward = std::function<at::Tensor()>;
  // Calls it in every step, or, where the manifest declares `replays_steps`, in the first. Leaves
  // the gradients that the schedule updates from, and returns the loss to report.
  virtual at::Tensor run(Training& training, const ForwardBackward& forward_backward,
                         std::int64_t step) = 0;
};

// Slot `loss_head`: the loss from the final hidden states; null means the model's own. The model's
// auxiliary loss is added to either.
class LossHead {
 public:
  virtual ~LossHead() = default;
  virtual at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) = 0;
};

// Slots `base_weights` and `adapters`: change the built model before parameters are collected.
class ModelTransform {
 public:
  virtual ~ModelTransform() = default;
  virtual void apply(Model& model) = 0;  // may throw Unsupported
};

// Wrapper around what a step does. What a function returns is released when what it surrounds ends.
class StepContext {
 public:
  virtual ~StepContext() = default;
  // Around the whole step: forward, backward and update.
  virtual std::shared_ptr<void> enter_step() { return nullptr; }
  // Around forward and loss of each micro-batch, on the thread that runs them: autocast. A
  // recomputation in backward is outside; checkpointing restores autocast itself.
  virtual std::shared_ptr<void> enter_forward() { return nullptr; }
};

// Wrapper that is told when a step begins: training that changes from step to step.
class StepListener {
 public:
  virtual ~StepListener() = default;
  virtual void on_step_begin(Training& training, std::int64_t step) = 0;
};

// Wrapper on the loss before backward; the loss that is reported stays as it was (loss scaling).
class LossTransform {
 public:
  virtual ~LossTransform() = default;
  virtual at::Tensor apply(const at::Tensor& loss) = 0;  // scalar -> scalar
};

// Wrapper on each gradient as soon as backward has it, before a schedule may update from it.
class GradientHook {
 public:
  virtual ~GradientHook() = default;
  // On the thread that runs backward, with grad mode off. `last`: of the step's last micro-batch,
  // so that the gradient is complete. May replace the gradient (`tensor.mutable_grad() = ...`) or
  // take it away (`.reset()`); it is then freed at once.
  virtual void on_gradient(const Parameter& parameter, bool last) = 0;
};

// Places of gradient hooks, in the order they run.
enum class GradientPlace { kTransform, kReduce, kOffload };

// Wrapper on all gradients before an update that needs all of them (unscale, clip).
class GradientTransform {
 public:
  virtual ~GradientTransform() = default;
  // False: this step has no update (loss scaling met an infinite gradient); later transforms are
  // not asked then.
  virtual bool apply(const std::vector<Parameter>& parameters) = 0;
};

// Places of block wrappers, outermost first: of those around blocks, and of those around one part.
enum class BlockPlace { kShard, kOffload, kCheckpoint };

struct Recipe {
  // Slots.
  std::shared_ptr<ModelTransform> base_weights;  // null: as built
  std::shared_ptr<ModelTransform> adapters;      // null: none
  std::shared_ptr<UpdateRule> update_rule;
  std::optional<KernelGrouping> kernel_grouping;  // unset: the schedule's default
  std::shared_ptr<Schedule> schedule;
  std::int64_t micro_batches = 1;
  std::shared_ptr<LossHead> loss_head;
  std::shared_ptr<StepRunner> step_runner;

  // Wrappers.
  std::vector<std::function<bool(const Parameter&)>>
      freezing;  // true: this parameter is never trained
  std::vector<std::shared_ptr<EmbeddingWrapper>> embedding_wrappers;  // outermost first
  std::vector<std::pair<BlockPlace, std::shared_ptr<BlockWrapper>>> block_wrappers;
  std::vector<std::shared_ptr<SavedTensorHooks>>
      saved_tensor_hooks;  // around the forward, outermost first
  std::vector<std::shared_ptr<StepContext>> step_contexts;
  std::vector<std::shared_ptr<StepListener>> step_listeners;
  std::vector<std::shared_ptr<LossTransform>> loss_transforms;
  std::vector<std::pair<GradientPlace, std::shared_ptr<GradientHook>>> gradient_hooks;
  std::vector<std::shared_ptr<GradientTransform>> gradient_transforms;
  std::vector<std::pair<UpdatePlace, std::shared_ptr<UpdateRuleWrapper>>> update_rule_wrappers;
};

// The training that a recipe is carried out in, as schedules, runners and listeners see it.
class Training {
 public:
  virtual ~Training() = default;
  // Every parameter that some step may train, in the module's order.
  virtual const std::vector<Parameter>& parameters() const = 0;
  virtual const Recipe& recipe() const = 0;
  // Applies gradient transforms, then one update of all parameters that have a gradient.
  virtual void update_all() = 0;
  // One update of these parameters with the recipe's rule and grouping, marked `in_update`.
  virtual void update(const std::vector<Parameter>& parameters) = 0;
  // For schedules, in `prepare`: called each time backward has a parameter's gradient, after the
  // recipe's gradient hooks, as those are.
  using GradientCallback = std::function<void(const Parameter& parameter, bool last)>;
  virtual void on_gradient(GradientCallback callback) = 0;
  // For listeners, in `on_step_begin`: whether this parameter is trained from this step on. One
  // that is not has no gradient; its optimizer state stays until `forget`.
  virtual void set_trainable(const Parameter& parameter, bool trainable) = 0;
  // The recipe's rule with its wrappers drops what it keeps of this parameter.
  virtual void forget(const Parameter& parameter) = 0;
};

}  // namespace peakbench
