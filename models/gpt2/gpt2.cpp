// The four sizes of GPT-2 as language models in training: Hugging Face's GPT2LMHeadModel as a
// module tree, with the same names and the same order of parameters. Source: transformers 5.23.0,
// models/gpt2/modeling_gpt2.py, integrations/sdpa_attention.py and activations.py.
#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/language_model.h"
#include "peakbench/nn.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::gpt2 {
namespace {

constexpr double kLayerNormEps = 1e-5;
constexpr double kInitialDeviation = 0.02;

// Official values: config.json of each model on Hugging Face (the manifest has the addresses).
struct Gpt2Config {
  std::int64_t layers, width, mlp, heads, positions, vocabulary;
  double dropout;  // of embeddings, attention's scores and what each block adds
};

// Throws OptionError for sizes that do not fit each other.
Gpt2Config config_from(const Options& options) {
  const Gpt2Config config{.layers = options.integer("layers"),
                          .width = options.integer("width"),
                          .mlp = options.integer("mlp"),
                          .heads = options.integer("heads"),
                          .positions = options.integer("positions"),
                          .vocabulary = options.integer("vocabulary"),
                          .dropout = options.number("dropout")};
  if (config.width % config.heads != 0) {
    throw OptionError("width=" + std::to_string(config.width) +
                      " is not a multiple of heads=" + std::to_string(config.heads));
  }
  return config;
}

// No mask is built: without padding and packing, transformers leaves causality to the operator.
// q, k, v: (B, H, T, D) -> (B, T, H, D)
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double dropout) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const bool causal = q.size(2) > 1;
  const at::Tensor output =
      at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, dropout, causal, scale);
  return output.transpose(1, 2).contiguous();
}

// Causal self-attention whose queries, keys and values come from one layer: GPT2Attention.
// c_attn: (C, 3 C), c_proj: (C, C), both transposed as in Conv1D.
class Attention : public torch::nn::Module {
 public:
  Attention(const Gpt2Config& config, const at::TensorOptions& options)
      : width_(config.width), head_width_(config.width / config.heads), dropout_(config.dropout) {
    c_attn = register_module("c_attn", std::make_shared<nn::Conv1d>(width_, 3 * width_, options));
    c_proj = register_module("c_proj", std::make_shared<nn::Conv1d>(width_, width_, options));
  }
  // (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    const std::int64_t batch = input.size(0), length = input.size(1);
    at::Tensor q, k, v;
    {
      const auto parts = c_attn->forward(input).split(width_, 2);
      const auto by_head = [&](const at::Tensor& t) {  // (B, T, C) -> (B, H, T, D)
        return t.view({batch, length, -1, head_width_}).transpose(1, 2);
      };
      // Viewed in this order: backward goes through them in the opposite one.
      k = by_head(parts[1]);
      v = by_head(parts[2]);
      q = by_head(parts[0]);
    }
    at::Tensor output = attend(q, k, v, dropout_);
    output = output.reshape({batch, length, -1}).contiguous();
    output = c_proj->forward(output);
    return at::dropout(output, dropout_, /*train=*/true);
  }

  std::shared_ptr<nn::Conv1d> c_attn, c_proj;

 private:
  std::int64_t width_, head_width_;
  double dropout_;
};

// tensor * number as Python runs it: the number becomes a tensor, which autograd keeps.
at::Tensor times(const at::Tensor& tensor, double number) {
  return at::mul(tensor, at::native::wrapped_scalar_tensor(number));
}

// "gelu_new": operator by operator, as transformers writes it. One statement an operator: each
// intermediate is freed where Python frees it.
at::Tensor new_gelu(const at::Tensor& x) {
  const at::Tensor half = times(x, 0.5);
  at::Tensor y = times(at::pow(x, 3.0), 0.044715);
  y = x + y;
  y = times(y, std::sqrt(2.0 / std::numbers::pi));
  y = at::tanh(y);
  y = y + 1.0;
  return half * y;
}

// GPT2MLP.
// c_fc: (C, mlp), c_proj: (mlp, C), both transposed as in Conv1D.
class Mlp : public torch::nn::Module {
 public:
  Mlp(const Gpt2Config& config, const at::TensorOptions& options) : dropout_(config.dropout) {
    c_fc = register_module("c_fc", std::make_shared<nn::Conv1d>(config.width, config.mlp, options));
    c_proj =
        register_module("c_proj", std::make_shared<nn::Conv1d>(config.mlp, config.width, options));
  }
  // (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = c_fc->forward(input);  // (B, T, mlp)
    x = new_gelu(x);
    x = c_proj->forward(x);
    return at::dropout(x, dropout_, /*train=*/true);
  }

  std::shared_ptr<nn::Conv1d> c_fc, c_proj;

 private:
  double dropout_;
};

// GPT2Block.
class Block : public torch::nn::Module {
 public:
  Block(const Gpt2Config& config, const at::TensorOptions& options) {
    const auto make_norm = [&] {
      return std::make_shared<nn::LayerNorm>(config.width, kLayerNormEps, options);
    };
    ln_1 = register_module("ln_1", make_norm());
    attn = register_module("attn", std::make_shared<Attention>(config, options));
    ln_2 = register_module("ln_2", make_norm());
    mlp = register_module("mlp", std::make_shared<Mlp>(config, options));

    fill_normal(attn->c_attn->weight, kInitialDeviation);
    fill_normal(mlp->c_fc->weight, kInitialDeviation);
    // Both ways into the residual, less the more of them there are: GPT-2's paper, section 2.3.
    const double into_residual =
        kInitialDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
    fill_normal(attn->c_proj->weight, into_residual);
    fill_normal(mlp->c_proj->weight, into_residual);
  }
  // input: (B, T, C) -> (B, T, C). Attention and MLP run as the model's parts.
  // Locals live as long as the reference's: attention's output until the block is through.
  at::Tensor forward(Model& model, const at::Tensor& input) const {
    ModuleScope scope(*this);
    at::Tensor x = ln_1->forward(input);
    const at::Tensor attended =
        model.run_part("attention",
                       [attention = attn.get()](const std::vector<at::Tensor>& in) {
                         return attention->forward(in[0]);
                       },
                       {x});
    x = attended + input;

    const at::Tensor residual = x;
    x = ln_2->forward(x);
    const at::Tensor inner = model.run_part(
        "mlp", [of = mlp.get()](const std::vector<at::Tensor>& in) { return of->forward(in[0]); },
        {x});
    return residual + inner;
  }

  std::shared_ptr<nn::LayerNorm> ln_1;
  std::shared_ptr<Attention> attn;
  std::shared_ptr<nn::LayerNorm> ln_2;
  std::shared_ptr<Mlp> mlp;
};

// GPT2Model: embeddings of tokens and positions, blocks "h.i", final norm. Who runs the blocks
// decides how (Model::run_block).
class Transformer : public torch::nn::Module {
 public:
  Transformer(const Gpt2Config& config, const at::TensorOptions& options) {
    wte = register_module(
        "wte", std::make_shared<nn::Embedding>(config.vocabulary, config.width, options));
    wpe = register_module("wpe",
                          std::make_shared<nn::Embedding>(config.positions, config.width, options));
    fill_normal(wte->weight, kInitialDeviation);
    fill_normal(wpe->weight, kInitialDeviation);
    auto list = register_module("h", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < config.layers; ++i) {
      blocks.push_back(
          list->register_module(std::to_string(i), std::make_shared<Block>(config, options)));
    }
    ln_f = register_module("ln_f",
                           std::make_shared<nn::LayerNorm>(config.width, kLayerNormEps, options));
  }

  std::shared_ptr<nn::Embedding> wte, wpe;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<nn::LayerNorm> ln_f;
};

class LmHeadModel : public torch::nn::Module {
 public:
  LmHeadModel(const Gpt2Config& c, const at::TensorOptions& options) : config(c) {
    transformer = register_module("transformer", std::make_shared<Transformer>(config, options));
    lm_head =
        register_module("lm_head", std::make_shared<language_model::TiedHead>(transformer->wte));
  }

  Gpt2Config config;
  std::shared_ptr<Transformer> transformer;
  std::shared_ptr<language_model::TiedHead> lm_head;
};

class Gpt2 : public Model {
 public:
  explicit Gpt2(const ModelContext& context)
      : device_(context.tensor_options.device()),
        lm_(std::make_shared<LmHeadModel>(config_from(context.options), context.tensor_options)) {
    if (const std::string& weights = context.options.string("weights"); !weights.empty()) {
      load_safetensors(*lm_, weights);
    }
  }

  torch::nn::Module& module() override { return *lm_; }

  Batch make_batch(const BatchShape& shape) override {
    check_length(shape.sequence_length);
    const at::Tensor tokens =
        at::randint(lm_->config.vocabulary, {shape.batch_size, shape.sequence_length},
                    at::TensorOptions(at::kLong).device(device_));
    return {tokens, tokens.clone()};
  }

  at::Tensor embed(const Batch& batch) override {
    return lm_->transformer->wte->forward(batch.input);
  }

  at::Tensor hidden_states(const Batch& batch) override {
    const Transformer& model = *lm_->transformer;
    const ModuleScope scope(*lm_), model_scope(model);
    const at::Tensor embeddings = run_embed(batch);  // (B, T, C)
    const at::Tensor positions = language_model::make_positions(embeddings.size(1), device_);
    const at::Tensor position_embeddings = model.wpe->forward(positions);  // (1, T, C)
    at::Tensor x = embeddings + position_embeddings;
    language_model::look_for_packed_sequences(positions, embeddings.size(0));
    x = at::dropout(x, lm_->config.dropout, /*train=*/true);

    for (std::size_t i = 0; i < model.blocks.size(); ++i) {
      const Block* block = model.blocks[i].get();
      // transformers hands every block the positions, too: a checkpointed one keeps them.
      const TensorFunction function = [this, block, positions](const std::vector<at::Tensor>& in) {
        return block->forward(*this, in[0]);
      };
      x = run_block(i, function, {x});
    }
    return model.ln_f->forward(x);
  }

  at::Tensor loss(at::Tensor hidden_states, const Batch& batch) override {
    const ModuleScope scope(*lm_);
    const at::Tensor logits = lm_->lm_head->forward(hidden_states);  // (B, T, V)
    return language_model::next_token_loss(logits, batch.target);
  }

  DefaultUpdateRule default_update_rule() const override { return DefaultUpdateRule::kAdamW; }

  std::vector<std::string> block_paths() const override {
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < lm_->transformer->blocks.size(); ++i)
      paths.push_back("transformer.h." + std::to_string(i));
    return paths;
  }

  std::optional<OutputHead> output_head() override {
    OutputHead head;
    head.weight = lm_->transformer->wte->weight;
    return head;
  }

  std::vector<NamedLinear> linears() override {
    std::vector<NamedLinear> linears;
    const auto paths = block_paths();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const Block& block = *lm_->transformer->blocks[i];
      linears.push_back({"qkv_proj", paths[i] + ".attn.c_attn", block.attn->c_attn.get()});
      linears.push_back({"output_proj", paths[i] + ".attn.c_proj", block.attn->c_proj.get()});
      linears.push_back({"mlp", paths[i] + ".mlp.c_fc", block.mlp->c_fc.get()});
      linears.push_back({"mlp", paths[i] + ".mlp.c_proj", block.mlp->c_proj.get()});
    }
    return linears;
  }

  std::string why_no_linear(const std::string& part) const override {
    if (part == "output") return "the output head is tied to the embedding";
    return "queries, keys and values come from one layer, qkv_proj";
  }

 private:
  void check_length(std::int64_t length) const {
    const std::int64_t positions = lm_->config.positions;
    if (length <= positions) return;
    throw Unsupported("sequences of " + std::to_string(length) + " tokens: this model learns " +
                      std::to_string(positions) +
                      " positions; give a shorter sequence, or more with the option positions");
  }

  at::Device device_;
  std::shared_ptr<LmHeadModel> lm_;
};

std::unique_ptr<Model> make(const ModelContext& context) { return std::make_unique<Gpt2>(context); }

}  // namespace
}  // namespace peakbench::gpt2

PEAKBENCH_MODEL_PLUGIN(peakbench::gpt2::make)
