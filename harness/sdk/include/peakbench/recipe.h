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
#include "peakbench/memory.h"
#include "peakbench/model.h"
#include "peakbench/saved_tensor_hooks.h"
#include "peakbench/update_rule.h"

namespace peakbench {

class Training;

// Which run of a micro-batch through the model this is, with backward or without.
struct Pass {
  std::int64_t index = 0;        // of the step's passes over its batch, from 0
  bool last = true;              // no other pass follows in this step
  std::int64_t micro_batch = 0;  // of the pass, from 0
  bool last_micro_batch = true;  // then the gradients of the pass are complete
};

// Slot `schedule`: when updates happen.
class Schedule : public HoldsMemory {
 public:
  // Once, before the first step, when the trainable parameters are known.
  virtual void prepare(Training& training) {}
  // After the backward of the step's last micro-batch; phase optimizer_step.
  virtual void after_backward(Training& training) = 0;
  // How tensors are grouped where no strategy takes the slot `kernel_grouping`.
  virtual KernelGrouping default_grouping() const { return KernelGrouping::kForeach; }
};

// Slot `loss_head`: the loss from the final hidden states; null means the model's own. The model's
// auxiliary loss is added to either.
class LossHead : public HoldsMemory {
 public:
  virtual at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) = 0;
};

// How a step runner wants a pass.
struct PassOptions {
  // No other pass follows in this step: hooks and contexts are told, and the worker holds the
  // runner to it.
  bool last = true;
  // Makes the loss instead of the recipe's head; null: the recipe's.
  LossHead* loss_head = nullptr;
};

// Runs the step's batch through the model, as often as a step runner asks. Phases, contexts,
// micro-batches and hooks are the worker's.
class Passes {
 public:
  virtual ~Passes() = default;
  // Forward and loss of every micro-batch, and nothing more. Returns the loss of the batch, a
  // scalar. Without `grad` autograd keeps nothing. With it the loss has its graph, for `backward`
  // or for the runner's own torch::autograd::grad; of several micro-batches all activations are
  // alive together.
  virtual at::Tensor forward(bool grad, const PassOptions& options) = 0;
  at::Tensor forward(bool grad) { return forward(grad, {}); }
  // Backward from a loss that `forward(true)` returned, changed first by the recipe's
  // `loss_transforms`. Gradients add up in .grad().
  virtual void backward(const at::Tensor& loss) = 0;
  // Forward and backward of one micro-batch after the other. Gradients add up in .grad(). Returns
  // the loss of the batch, without a graph.
  virtual at::Tensor forward_backward(const PassOptions& options) = 0;
  at::Tensor forward_backward() { return forward_backward({}); }
};

// Slot `step_runner`: how often forward and backward run in a step. Null: once.
class StepRunner : public HoldsMemory {
 public:
  // Runs some pass in every step, or, where the manifest declares `replays_steps`, in the first.
  // Leaves the gradients that the schedule updates from, or changes the parameters itself
  // (Training::count_update). Returns the loss to report. What it does before its first pass
  // belongs to the phase forward, what it does after a pass to optimizer_step. Each pass but the
  // step's last is asked for with {.last = false}.
  virtual at::Tensor run(Training& training, Passes& passes, std::int64_t step) = 0;
};

// Slots `base_weights` and `adapters`: change the built model before parameters are collected.
class ModelTransform : public HoldsMemory {
 public:
  virtual void apply(Model& model) = 0;  // may throw Unsupported
};

// Wrapper around what a step does. What a function returns is released when what it surrounds ends.
class StepContext : public HoldsMemory {
 public:
  // Around the whole step: forward, backward and update.
  virtual std::shared_ptr<void> enter_step() { return nullptr; }
  // Around forward and loss of each micro-batch, on the thread that runs them: autocast. A
  // recomputation in backward is outside; checkpointing restores autocast itself.
  virtual std::shared_ptr<void> enter_forward(const Pass& pass) { return nullptr; }
};

// Wrapper that is told when a step begins: training that changes from step to step.
class StepListener : public HoldsMemory {
 public:
  virtual void on_step_begin(Training& training, std::int64_t step) = 0;
};

// Wrapper on the loss before backward; the loss that is reported stays as it was (loss scaling).
class LossTransform : public HoldsMemory {
 public:
  virtual at::Tensor apply(const at::Tensor& loss, const Pass& pass) = 0;  // scalar -> scalar
};

// Wrapper on each gradient as soon as backward has it, before a schedule may update from it.
class GradientHook : public HoldsMemory {
 public:
  // On the thread that runs backward, with grad mode off. With `pass.last_micro_batch` the pass's
  // gradient is complete; with `pass.last`, too, no other follows in this step. May replace the
  // gradient (`tensor.mutable_grad() = ...`) or take it away (`.reset()`); it is then freed at
  // once.
  virtual void on_gradient(const Parameter& parameter, const Pass& pass) = 0;
};

// Places of gradient hooks, in the order they run.
enum class GradientPlace { kReduce, kOffload };

// Wrapper on all gradients before an update that needs all of them (unscale, clip).
class GradientTransform : public HoldsMemory {
 public:
  // False: this step has no update (loss scaling met an infinite gradient); later transforms are
  // not asked then.
  virtual bool apply(const std::vector<Parameter>& parameters) = 0;
};

// Places of block wrappers, outermost first: of those around blocks, and of those around one part.
enum class BlockPlace { kOffload, kCheckpoint };

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
  std::vector<std::pair<SavedTensorPlace, std::shared_ptr<SavedTensorHooks>>>
      saved_tensor_hooks;  // around the forward
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
  using GradientCallback = std::function<void(const Parameter& parameter, const Pass& pass)>;
  virtual void on_gradient(GradientCallback callback) = 0;
  // For step runners, in `run`: the runner has changed the parameters itself, and that is the
  // step's update. Where it did so with ATen's operators it is seen without.
  virtual void count_update() = 0;
  // For listeners, in `on_step_begin`: whether this parameter is trained from this step on. One
  // that is not has no gradient; its optimizer state stays until `forget`.
  virtual void set_trainable(const Parameter& parameter, bool trainable) = 0;
  // The recipe's rule with its wrappers drops what it keeps of this parameter.
  virtual void forget(const Parameter& parameter) = 0;
};

}  // namespace peakbench
