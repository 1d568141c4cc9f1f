// What a training step is made of. The baseline fills every slot; a strategy replaces slots or adds
// wrappers. A slot has one owner (conflicts are found from manifests before anything runs);
// wrappers are many, each at a fixed place whatever the order of typing. Strategies only fill the
// recipe; the worker carries it out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/model.h"
#include "peakbench/saved_tensor_hooks.h"
#include "peakbench/update_rule.h"

namespace peakbench {

struct Parameter {
  std::string name;  // path in the module tree
  at::Tensor tensor;
};

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

// Slot `loss_head`: the loss from the final hidden states; null means the model's own.
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

// Wrapper around forward and loss (autocast): what `enter` returns is released afterwards.
class StepContext {
 public:
  virtual ~StepContext() = default;
  virtual std::shared_ptr<void> enter() = 0;
};

// Wrapper on gradients before an update that needs all of them (unscale, reduce, clip).
class GradientTransform {
 public:
  virtual ~GradientTransform() = default;
  // False: this step has no update (loss scaling met an infinite gradient); later transforms are
  // not asked then.
  virtual bool apply(const std::vector<Parameter>& parameters) = 0;
};

// Wrapper around each update (gather, offload).
class AroundUpdate {
 public:
  virtual ~AroundUpdate() = default;
  virtual void before(const std::vector<at::Tensor>& parameters) = 0;
  virtual void after(const std::vector<at::Tensor>& parameters) = 0;
};

// Places of block wrappers, outermost first.
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

  // Wrappers.
  std::vector<std::function<bool(const Parameter&)>>
      freezing;  // true: this parameter is not trained
  std::vector<std::pair<BlockPlace, std::shared_ptr<BlockWrapper>>> block_wrappers;
  std::vector<std::shared_ptr<SavedTensorHooks>>
      saved_tensor_hooks;  // around the forward, outermost first
  std::vector<std::shared_ptr<StepContext>> step_contexts;
  std::vector<std::shared_ptr<GradientTransform>> gradient_transforms;
  std::vector<std::shared_ptr<AroundUpdate>> around_update;
};

// The training that a recipe is carried out in, as schedules see it.
class Training {
 public:
  virtual ~Training() = default;
  virtual const std::vector<Parameter>& parameters() const = 0;  // trainable, in the module's order
  virtual const Recipe& recipe() const = 0;
  // Applies gradient transforms, then one update of all trainable parameters.
  virtual void update_all() = 0;
  // One update of these parameters with the recipe's rule and grouping, marked `in_update`.
  virtual void update(const std::vector<at::Tensor>& parameters) = 0;
  // Called each time a parameter's gradient is complete, in ascending `order`, on the thread that
  // runs backward, with grad mode off. A callback may drop the gradient
  // (`tensor.mutable_grad().reset()`); it is then freed at once.
  virtual void on_gradient(int order, std::function<void(const Parameter&)> callback) = 0;
};

}  // namespace peakbench
