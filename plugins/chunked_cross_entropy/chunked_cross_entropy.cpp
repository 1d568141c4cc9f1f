// Cross entropy with the logits of a part of the tokens at a time.
//
// As torchtune's CEWithChunkedOutputLoss, with each part's logits made when they are needed, as its
// successor LinearCrossEntropyLoss makes them. Source: torchtune, torchtune/modules/loss.
#include <ATen/ATen.h>

#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

// Of the tokens that count, summed. hidden: (B, t, C); targets: (B, t). The logits die here; what
// backward needs of them (their log softmax) lives on.
at::Tensor summed_loss(const OutputHead& head, const at::Tensor& hidden,
                       const at::Tensor& targets) {
  at::Tensor logits = head.logits(hidden).to(head.loss_dtype);  // (B, t, V)
  logits = logits.view({-1, logits.size(-1)});
  return at::cross_entropy_loss(logits, targets.reshape(-1), /*weight=*/{}, at::Reduction::Sum,
                                head.ignore_index, /*label_smoothing=*/0.0);
}

class ChunkedCrossEntropy : public LossHead {
 public:
  explicit ChunkedCrossEntropy(std::int64_t chunks) : chunks_(chunks) {}

  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    ModuleScope scope(model.module());
    const OutputHead head = model.output_head().value();
    const at::Tensor targets = head.targets(batch.target);  // (B, T)
    const at::Tensor counting = targets.ne(head.ignore_index).sum();
    const auto hidden_chunks = hidden_states.tensor_split(chunks_, 1);
    const auto target_chunks = targets.tensor_split(chunks_, 1);
    at::Tensor total = summed_loss(head, hidden_chunks[0], target_chunks[0]);
    for (std::size_t i = 1; i < hidden_chunks.size(); ++i)
      total = total + summed_loss(head, hidden_chunks[i], target_chunks[i]);
    return total / counting;
  }

 private:
  std::int64_t chunks_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.loss_head = std::make_shared<ChunkedCrossEntropy>(context.options.integer("chunks"));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
