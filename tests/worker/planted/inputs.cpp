// Models that say more than a text and its labels: a loss of their own, tensors by name, another
// batch in each step, embeddings that strategies may change. tests/worker/inputs_test.py.
#include <ATen/ATen.h>

#include <utility>

#include "peakbench/plugin.h"
#include "token_weights.h"

namespace {

using namespace peakbench;

constexpr double kBalance = 0.5;

class Planted : public Model {
 public:
  explicit Planted(const ModelContext& context)
      : id_(context.id), weights_(std::make_shared<TokenWeights>(context.tensor_options, 0.3)) {
    for (const char* name : {"block_0", "block_1"})
      weights_->register_module(name, std::make_shared<torch::nn::Module>(name));
  }

  torch::nn::Module& module() override { return *weights_; }

  Batch make_batch(const BatchShape& shape) override {
    Batch batch = of_length(shape.batch_size, kTokens);
    if (id_ == "two-texts") {
      batch.named.push_back({"other", tokens(shape.batch_size, kTokens)});
      batch.named.push_back({"mask", at::ones({kTokens, 1}), /*per_sample=*/false});
    }
    if (id_ == "bad-named") batch.named.push_back({"mask", at::ones({kTokens, 1})});
    if (id_ == "named-twice")
      for (int i = 0; i < 2; ++i) batch.named.push_back({"other", tokens(shape.batch_size, 1)});
    return batch;
  }

  std::optional<Batch> next_batch(std::int64_t step, const BatchShape& shape) override {
    if (id_ == "more-samples") return of_length(shape.batch_size + 1, kTokens);
    if (!id_.starts_with("lengths") || id_ == "lengths-none") return std::nullopt;
    return of_length(shape.batch_size, step == 1 ? 4 * kTokens : 2 * kTokens);
  }
  bool keeps_batch_until_next() const override { return id_ == "lengths-kept"; }

  at::Tensor embed(const Batch& batch) override {
    return at::embedding(weights_->embedding, batch.input);
  }

  at::Tensor hidden_states(const Batch& batch) override {
    used_.clear();
    at::Tensor x = run_embed(batch);  // (B, T, C)
    if (id_ == "two-texts")
      x = (x + at::embedding(weights_->embedding, batch.at("other"))) * batch.at("mask");
    const BlockFunction block =
        [this](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
      const at::Tensor y = at::tanh(at::linear(in[0] + in[0].mean(1, true), weights_->inner));
      return {y, y.square().mean()};
    };
    for (std::size_t i = 0; i < 2; ++i) {
      auto outputs = run_block(i, block, {x});
      x = std::move(outputs.at(0));
      used_.push_back(std::move(outputs.at(1)));
    }
    return x;
  }

  at::Tensor loss(at::Tensor hidden, const Batch& batch) override {
    const at::Tensor loss =
        at::cross_entropy_loss(at::linear(hidden, weights_->head).view({-1, kVocabulary}),
                               batch.target.reshape(-1), {}, at::Reduction::Mean, kIgnored);
    if (id_ == "two-losses") return loss * at::ones({2}, loss.options());
    if (id_ == "stray") return loss * temperature_;
    return id_ == "router-inside" ? loss + balance() : loss;
  }

  at::Tensor auxiliary_loss(const Batch&) override {
    if (id_ == "vector-router") return at::zeros({2});
    return id_ == "router" ? balance() : at::Tensor();
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdam; }
  std::vector<NamedLinear> linears() override { return {}; }
  std::vector<std::string> block_paths() const override {
    if (id_ == "few-blocks") return {"block_0"};
    if (id_ == "same-blocks") return {"block_0", "block_0"};
    return {id_ == "wrong-blocks" ? "blok_0" : "block_0", "block_1"};
  }
  std::optional<OutputHead> output_head() override {
    OutputHead head;
    head.weight = weights_->head;
    head.shifts_labels = false;
    return head;
  }

 private:
  at::Tensor tokens(std::int64_t samples, std::int64_t length) const {
    return at::randint(kVocabulary, {samples, length},
                       at::TensorOptions(at::kLong).device(weights_->inner.device()));
  }
  Batch of_length(std::int64_t samples, std::int64_t length) const {
    const at::Tensor input = tokens(samples, length);
    return {input, input.clone()};
  }
  at::Tensor balance() {
    const auto used = std::exchange(used_, {});
    return (used.at(0) + used.at(1)) * kBalance;
  }

  std::string id_;
  at::Tensor temperature_ = at::ones({1}).requires_grad_(true);  // registered nowhere
  std::shared_ptr<TokenWeights> weights_;
  std::vector<at::Tensor> used_;  // a block each, of the last hidden_states
};

std::unique_ptr<Model> make(const ModelContext& context) {
  return std::make_unique<Planted>(context);
}

}  // namespace

PEAKBENCH_MODEL_PLUGIN(make)
