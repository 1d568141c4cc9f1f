#include "lm_head_model.h"

#include <ATen/ATen.h>

#include "peakbench/initialise.h"

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

}  // namespace peakbench::gpt2
