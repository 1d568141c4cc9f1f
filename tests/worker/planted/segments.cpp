// Checkpointing of segments (https://arxiv.org/abs/1604.06174) by an author who forgot two things:
// the second run of a segment draws other random numbers, and has no autocast. Its manifest
// promises the baseline's bits all the same. tests/worker/check_test.py says what `peakbench check`
// finds.
//
// A wrapper sees one block at a time, so all blocks of a segment but the last run without autograd,
// and the last one's node has the whole segment's backward.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "peakbench/errors.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace {
using namespace peakbench;
namespace autograd = torch::autograd;

struct Kept : torch::CustomClassHolder {
  std::vector<BlockFunction> blocks;
};

class Segment : public autograd::Function<Segment> {
 public:
  static at::Tensor forward(autograd::AutogradContext* context, const at::Tensor& first,
                            const at::Tensor& last_input, c10::intrusive_ptr<Kept> kept) {
    context->save_for_backward({first});
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return kept->blocks.back()({last_input}).at(0);
  }
  static autograd::variable_list backward(autograd::AutogradContext* context,
                                          const autograd::variable_list& gradients) {
    const auto capsule = context->saved_data["kept"].toCapsule();
    const auto& kept = static_cast<const Kept&>(*capsule);
    at::Tensor start = context->get_saved_variables().at(0).detach();
    start.requires_grad_(true);
    at::Tensor x = start;
    {
      const at::AutoGradMode on(true);
      const RecomputeScope recompute;
      for (const BlockFunction& block : kept.blocks) x = block({x}).at(0);
    }
    autograd::backward({x}, {gradients.at(0)});
    return {start.grad(), {}, {}};
  }
};

class Segments : public BlockWrapper {
 public:
  explicit Segments(std::int64_t length) : length_(length) {}
  std::vector<at::Tensor> run(std::size_t index, std::size_t count, const BlockFunction& block,
                              const std::vector<at::Tensor>& inputs) override {
    if (inputs.size() != 1)
      throw Unsupported("segments: this model's blocks take more than the hidden state");
    if (!at::GradMode::is_enabled()) return block(inputs);
    const auto length =
        length_ > 0 ? static_cast<std::size_t>(length_)
                    : static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    if (index % length == 0) {
      first_ = inputs[0];
      kept_ = c10::make_intrusive<Kept>();
    }
    kept_->blocks.push_back(block);
    if ((index + 1) % length != 0 && index + 1 != count) {
      const at::NoGradGuard no_grad;
      return block(inputs);
    }
    if (!first_.requires_grad()) first_ = first_.detach().requires_grad_(true);
    at::Tensor out = Segment::apply(first_, inputs[0].detach(), kept_);
    first_.reset();
    kept_.reset();
    return {out};
  }

 private:
  std::int64_t length_;
  at::Tensor first_;
  c10::intrusive_ptr<Kept> kept_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.block_wrappers.emplace_back(BlockPlace::kCheckpoint,
                                     std::make_shared<Segments>(context.options.integer("length")));
}

}  // namespace

PEAKBENCH_STRATEGY_PLUGIN(apply)
