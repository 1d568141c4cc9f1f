#include "gpt2.h"

#include <ATen/ATen.h>

#include "peakbench/errors.h"
#include "peakbench/initialise.h"
#include "peakbench/observer.h"
#include "peakbench/plugin.h"
#include "peakbench/safetensors.h"

namespace peakbench::gpt2 {
namespace {

// nn.ModuleList: no forward of its own.
class Blocks : public torch::nn::Module {};

}  // namespace

Transformer::Transformer(const Gpt2Config& config, const at::TensorOptions& options) {
  wte = register_module("wte",
                        std::make_shared<nn::Embedding>(config.vocabulary, config.width, options));
  wpe = register_module("wpe",
                        std::make_shared<nn::Embedding>(config.positions, config.width, options));
  fill_normal(wte->weight, kInitialDeviation);
  fill_normal(wpe->weight, kInitialDeviation);
  auto list = register_module("h", std::make_shared<Blocks>());
  for (std::int64_t i = 0; i < config.layers; ++i) {
    blocks.push_back(
        list->register_module(std::to_string(i), std::make_shared<Block>(config, options)));
  }
  ln_f = register_module("ln_f",
                         std::make_shared<nn::LayerNorm>(config.width, kLayerNormEps, options));
}

LmHeadModel::LmHeadModel(const Gpt2Config& c, const at::TensorOptions& options) : config(c) {
  transformer = register_module("transformer", std::make_shared<Transformer>(config, options));
  lm_head =
      register_module("lm_head", std::make_shared<language_model::TiedHead>(transformer->wte));
}

// The family's plugin: the four sizes of GPT-2 as language models in training.

namespace {

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
