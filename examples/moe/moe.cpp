// A model outside of Peakbench's own source tree: a decoder with experts. Its blocks return two
// tensors, the hidden state and the router's logits, and it adds a loss of its own.
//
// Each layer has its reference's operators: Mixtral's (https://arxiv.org/abs/2401.04088;
// transformers 4.57, MixtralSparseMoeBlock) with a loop over the experts.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "peakbench/initialise.h"
#include "peakbench/language_model.h"
#include "peakbench/nn.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace moe {
namespace {

using namespace peakbench;

constexpr double kDeviation = 0.02, kEps = 1e-5;

struct Shape {
  std::int64_t layers, width, mlp, heads, experts, top_k, vocabulary;
};

std::shared_ptr<nn::Linear> linear(std::int64_t in, std::int64_t out,
                                   const at::TensorOptions& options) {
  return std::make_shared<nn::Linear>(
      in, out, /*bias=*/false, options,
      [](const at::Tensor& weight) { fill_normal(weight, kDeviation); });
}

// down(silu(up(x)))
class Expert : public torch::nn::Module {
 public:
  Expert(const Shape& shape, const at::TensorOptions& options) {
    up = register_module("up", linear(shape.width, shape.mlp, options));
    down = register_module("down", linear(shape.mlp, shape.width, options));
  }
  // (n, C) -> (n, C)
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    at::Tensor inner = up->forward(x);
    inner = at::silu(inner);
    return down->forward(inner);
  }
  std::shared_ptr<nn::Linear> up, down;
};

class Experts : public torch::nn::Module {
 public:
  Experts(const Shape& shape, const at::TensorOptions& options) : top_k_(shape.top_k) {
    gate = register_module("gate", linear(shape.width, shape.experts, options));
    for (std::int64_t i = 0; i < shape.experts; ++i)
      experts.push_back(
          register_module(std::to_string(i), std::make_shared<Expert>(shape, options)));
  }
  // (B, T, C) -> (B, T, C), and the router's logits (B T, E).
  std::vector<at::Tensor> forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    const at::Tensor x = input.view({-1, input.size(-1)});  // (N, C)
    const at::Tensor logits = gate->forward(x);             // (N, E)
    at::Tensor weights = at::softmax(logits, 1, at::kFloat), chosen;
    std::tie(weights, chosen) = at::topk(weights, top_k_, -1);  // (N, k)
    weights.div_(weights.sum(-1, /*keepdim=*/true));
    weights = weights.to(x.scalar_type());
    const at::Tensor mask =
        at::one_hot(chosen, static_cast<std::int64_t>(experts.size())).permute({2, 0, 1});
    const at::Tensor output = at::zeros_like(x);
    // As Python's variables, these live until the next expert's take their places. How many tokens
    // an expert has is read back from the device: the fact `decides_on_host`.
    at::Tensor token, place, some;
    for (std::size_t i = 0; i < experts.size(); ++i) {
      const auto found = at::where(mask[static_cast<std::int64_t>(i)]);
      token = found[0];
      place = found[1];
      some = at::index(x, {token});  // (n, C)
      some = experts[i]->forward(some);
      some = some * at::index(weights, {token, place}).unsqueeze(-1);
      output.index_add_(0, token, some);
    }
    return {output.view_as(input), logits};
  }

  std::shared_ptr<nn::Linear> gate;
  std::vector<std::shared_ptr<Expert>> experts;

 private:
  std::int64_t top_k_;
};

class Attention : public torch::nn::Module {
 public:
  Attention(const Shape& shape, const at::TensorOptions& options) : heads_(shape.heads) {
    qkv_proj = register_module("qkv_proj", linear(shape.width, 3 * shape.width, options));
    output_proj = register_module("output_proj", linear(shape.width, shape.width, options));
  }
  // (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    const std::int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto by_head = [&](const at::Tensor& t) {  // (B, T, C) -> (B, H, T, D)
      return t.view({batch, length, heads_, -1}).transpose(1, 2);
    };
    at::Tensor q, k, v;
    {
      const auto parts = qkv_proj->forward(x).split(width, 2);
      q = by_head(parts[0]);
      k = by_head(parts[1]);
      v = by_head(parts[2]);
    }
    at::Tensor y = at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
    y = y.transpose(1, 2).reshape({batch, length, width});
    return output_proj->forward(y);
  }
  std::shared_ptr<nn::Linear> qkv_proj, output_proj;

 private:
  std::int64_t heads_;
};

class Block : public torch::nn::Module {
 public:
  Block(const Shape& shape, const at::TensorOptions& options) {
    norm_1 = register_module("norm_1", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
    attention = register_module("attention", std::make_shared<Attention>(shape, options));
    norm_2 = register_module("norm_2", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
    experts = register_module("experts", std::make_shared<Experts>(shape, options));
  }
  // (B, T, C) -> (B, T, C), and the router's logits (B T, E).
  std::vector<at::Tensor> forward(Model& model, const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor y = norm_1->forward(input);
    y = model.run_part("attention",
                       [inner = attention.get()](const std::vector<at::Tensor>& in) {
                         return inner->forward(in[0]);
                       },
                       {y});
    const at::Tensor x = input + y;
    y = norm_2->forward(x);
    auto outputs = experts->forward(y);
    y = std::move(outputs[0]);
    outputs[0] = x + y;
    return outputs;
  }
  std::shared_ptr<nn::LayerNorm> norm_1, norm_2;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Experts> experts;
};

class Decoder : public torch::nn::Module {
 public:
  Decoder(const Shape& shape, const at::TensorOptions& options) {
    embed = register_module(
        "embed", std::make_shared<nn::Embedding>(shape.vocabulary, shape.width, options));
    fill_normal(embed->weight, kDeviation);
    for (std::int64_t i = 0; i < shape.layers; ++i)
      blocks.push_back(
          register_module("block_" + std::to_string(i), std::make_shared<Block>(shape, options)));
    norm = register_module("norm", std::make_shared<nn::LayerNorm>(shape.width, kEps, options));
    lm_head = register_module("lm_head", linear(shape.width, shape.vocabulary, options));
  }
  std::shared_ptr<nn::Embedding> embed;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<nn::LayerNorm> norm;
  std::shared_ptr<nn::Linear> lm_head;
};

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
