// Models whose batch is more than its samples: a loss over masked tokens, and one that holds each
// sample against all others. tests/worker/loss_test.py says what becomes of them in micro-batches.
#include <ATen/ATen.h>

#include "peakbench/plugin.h"
#include "token_weights.h"

namespace {

using namespace peakbench;

class Planted : public Model {
 public:
  explicit Planted(const ModelContext& context)
      : options_(context.tensor_options),
        weights_(std::make_shared<TokenWeights>(context.tensor_options)),
        is_masked_(context.id.starts_with("masked")) {}

  torch::nn::Module& module() override { return *weights_; }

  // Of sample i, i + 1 tokens count.
  Batch make_batch(const BatchShape& shape) override {
    const auto options = options_.dtype(at::kLong);
    const at::Tensor tokens = at::randint(kVocabulary, {shape.batch_size, kTokens}, options);
    at::Tensor labels = at::full_like(tokens, kIgnored);
    for (std::int64_t i = 0; i < shape.batch_size; ++i)
      labels.select(0, i).narrow(0, 0, std::min(i + 1, kTokens)).fill_(i % kVocabulary);
    return {tokens, labels};
  }

  at::Tensor hidden_states(const Batch& batch) override {
    return at::tanh(at::linear(at::embedding(weights_->embedding, batch.input), weights_->inner));
  }

  at::Tensor loss(at::Tensor hidden, const Batch& batch) override {
    if (is_masked_)
      return at::cross_entropy_loss(at::linear(hidden, weights_->head).view({-1, kVocabulary}),
                                    batch.target.reshape(-1), {}, at::Reduction::Mean, kIgnored);
    const at::Tensor each = hidden.mean(1);  // (B, C)
    const at::Tensor other = at::linear(each, weights_->inner);
    return at::cross_entropy_loss(at::mm(each, other.t()),
                                  at::arange(each.size(0), options_.dtype(at::kLong)), {},
                                  at::Reduction::Mean);
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override { return {}; }
  std::optional<OutputHead> output_head() override {
    if (!is_masked_) return std::nullopt;
    OutputHead head;
    head.weight = weights_->head;
    head.shifts_labels = false;
    return head;
  }

 private:
  at::TensorOptions options_;
  std::shared_ptr<TokenWeights> weights_;
  bool is_masked_;
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<Planted>(context);
}

}  // namespace

PEAKBENCH_MODEL_PLUGIN(make)
