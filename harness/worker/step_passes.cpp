#include "worker/step_passes.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

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

}  // namespace peakbench::worker
