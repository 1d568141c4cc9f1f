// Hugging Face's GPT2LMHeadModel as a module tree: same names, same order of parameters. Source:
// transformers 5.23.0, models/gpt2/modeling_gpt2.py.
#pragma once

#include <vector>

#include "layers.h"
#include "peakbench/language_model.h"

namespace peakbench::gpt2 {

// GPT2Model: embeddings of tokens and positions, blocks "h.i", final norm. Who runs the blocks
// decides how (Model::run_block).
class Transformer : public torch::nn::Module {
 public:
  Transformer(const Gpt2Config& config, const at::TensorOptions& options);

  std::shared_ptr<nn::Embedding> wte, wpe;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<nn::LayerNorm> ln_f;
};

class LmHeadModel : public torch::nn::Module {
 public:
  LmHeadModel(const Gpt2Config& config, const at::TensorOptions& options);

  Gpt2Config config;
  std::shared_ptr<Transformer> transformer;
  std::shared_ptr<language_model::TiedHead> lm_head;
};

}  // namespace peakbench::gpt2
