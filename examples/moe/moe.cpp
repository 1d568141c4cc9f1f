// A model outside of Peakbench's own source tree: a decoder with experts. Its blocks return two
// tensors, the hidden state and the router's logits, and it adds a loss of its own.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <string>
#include <utility>

#include "layers.h"
#include "peakbench/language_model.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace moe {
namespace {

using namespace peakbench;

Shape shape_from(const Options& options) {
  const Shape shape{options.integer("layers"),    options.integer("width"),
                    options.integer("mlp"),       options.integer("heads"),
                    options.integer("experts"),   options.integer("top_k"),
                    options.integer("vocabulary")};
  if (shape.width % shape.heads != 0)
    throw OptionError("width=" + std::to_string(shape.width) + " is not a multiple of heads");
  if (shape.top_k > shape.experts)
    throw OptionError("top_k=" + std::to_string(shape.top_k) +
                      " is above experts=" + std::to_string(shape.experts));
  return shape;
}

// tensor * number as Python runs it: the number becomes a tensor, which autograd keeps.
at::Tensor times(const at::Tensor& tensor, const at::Scalar& number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

// Switch Transformer's, equations 4 to 6, over all blocks at once. logits: of each block, (N, E).
// transformers 4.57, models/mixtral/modeling_mixtral.py, load_balancing_loss_func
at::Tensor balance_loss(const std::vector<at::Tensor>& logits, std::int64_t top_k) {
  const std::int64_t experts = logits.front().size(-1);
  const at::Tensor weights = at::softmax(at::cat(logits, 0), -1);  // (L N, E)
  const auto [largest, chosen] = at::topk(weights, top_k, -1);
  const at::Tensor mask = at::one_hot(chosen, experts);  // (L N, k, E)
  const at::Tensor used = mask.to(at::kFloat).mean(0);   // (k, E)
  const at::Tensor wanted = weights.mean(0);             // (E)
  const at::Tensor overlap = (used * wanted.unsqueeze(0)).sum();
  return times(overlap, experts);
}

class Moe : public Model {
 public:
  explicit Moe(const ModelContext& context)
      : shape_(shape_from(context.options)),
        balance_(context.options.number("balance")),
        device_(context.tensor_options.device()),
        decoder_(std::make_shared<Decoder>(shape_, context.tensor_options)) {
    if (const std::string& weights = context.options.string("weights"); !weights.empty())
      load_safetensors(*decoder_, weights);
  }

  torch::nn::Module& module() override { return *decoder_; }

  Batch make_batch(const BatchShape& shape) override {
    const at::Tensor tokens =
        at::randint(shape_.vocabulary, {shape.batch_size, shape.sequence_length},
                    at::TensorOptions(at::kLong).device(device_));
    return {tokens, tokens.clone()};
  }

  at::Tensor embed(const Batch& batch) override { return decoder_->embed->forward(batch.input); }

  at::Tensor hidden_states(const Batch& batch) override {
    const ModuleScope scope(*decoder_);
    router_logits_.clear();
    at::Tensor x = run_embed(batch);  // (B, T, C)
    for (std::size_t i = 0; i < decoder_->blocks.size(); ++i) {
      const BlockFunction block =
          [this, one = decoder_->blocks[i].get()](const std::vector<at::Tensor>& in) {
            return one->forward(*this, in[0]);
          };
      auto outputs = run_block(i, block, {x});
      x = std::move(outputs[0]);
      router_logits_.push_back(std::move(outputs[1]));
    }
    return decoder_->norm->forward(x);
  }

  at::Tensor loss(at::Tensor hidden_states, const Batch& batch) override {
    const ModuleScope scope(*decoder_);
    const at::Tensor logits = decoder_->lm_head->forward(hidden_states);
    hidden_states.reset();
    return language_model::next_token_loss(logits, batch.target);
  }

  // Given up with the function's end: a graph must not outlive its step.
  at::Tensor auxiliary_loss(const Batch&) override {
    const auto logits = std::exchange(router_logits_, {});
    return times(balance_loss(logits, shape_.top_k), balance_);
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdamW; }
  std::vector<std::string> block_paths() const override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < decoder_->blocks.size(); ++i)
      paths.push_back("block_" + std::to_string(i));
    return paths;
  }

  std::vector<NamedLinear> linears() override {
    std::vector<NamedLinear> linears;
    for (std::size_t i = 0; i < decoder_->blocks.size(); ++i) {
      const Block& block = *decoder_->blocks[i];
      const std::string path = "block_" + std::to_string(i);
      linears.push_back(
          {"qkv_proj", path + ".attention.qkv_proj", block.attention->qkv_proj.get()});
      linears.push_back(
          {"output_proj", path + ".attention.output_proj", block.attention->output_proj.get()});
      for (std::size_t k = 0; k < block.experts->experts.size(); ++k) {
        const Expert& expert = *block.experts->experts[k];
        const std::string of_expert = path + ".experts." + std::to_string(k);
        linears.push_back({"mlp", of_expert + ".up", expert.up.get()});
        linears.push_back({"mlp", of_expert + ".down", expert.down.get()});
      }
    }
    linears.push_back({"output", "lm_head", decoder_->lm_head.get()});
    return linears;
  }

 private:
  Shape shape_;
  double balance_;
  at::Device device_;
  std::shared_ptr<Decoder> decoder_;
  std::vector<at::Tensor> router_logits_;  // of the last hidden_states, a block each
};

std::unique_ptr<Model> make(const ModelContext& context) { return std::make_unique<Moe>(context); }

}  // namespace
}  // namespace moe

PEAKBENCH_MODEL_PLUGIN(moe::make)
