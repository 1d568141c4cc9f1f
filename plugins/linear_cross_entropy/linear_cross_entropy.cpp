// Cross entropy fused with the linear layer before it: no logits are kept.
#include "fused_loss.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"

namespace peakbench::linear_cross_entropy {
namespace {

class FusedHead : public LossHead {
 public:
  explicit FusedHead(std::int64_t chunk_tokens) : chunk_tokens_(chunk_tokens) {}

  at::Tensor loss(Model& model, const at::Tensor& hidden_states, const Batch& batch) override {
    ModuleScope scope(model.module());
    const OutputHead head = model.output_head().value();
    if (const std::string why = head.why_not_plain(); !why.empty())
      throw Unsupported("linear-cross-entropy multiplies by the output head's weight itself, and " +
                        why + "; chunked-cross-entropy goes through the layer");
    return fused_loss(head, hidden_states, head.targets(batch.target), chunk_tokens_);
  }

 private:
  std::int64_t chunk_tokens_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  recipe.loss_head = std::make_shared<FusedHead>(context.options.integer("chunk_tokens"));
}

}  // namespace
}  // namespace peakbench::linear_cross_entropy

PEAKBENCH_STRATEGY_PLUGIN(peakbench::linear_cross_entropy::apply)
