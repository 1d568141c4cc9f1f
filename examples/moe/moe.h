// The layers of a decoder with experts, each with its reference's operators: Mixtral's
// (https://arxiv.org/abs/2401.04088; transformers 4.57, MixtralSparseMoeBlock) with a loop over the
// experts.
#pragma once

#include <memory>
#include <vector>

#include "peakbench/model.h"
#include "peakbench/nn.h"

namespace moe {

struct Shape {
  std::int64_t layers, width, mlp, heads, experts, top_k, vocabulary;
};

// down(silu(up(x)))
class Expert : public torch::nn::Module {
 public:
  Expert(const Shape& shape, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  // (n, C) -> (n, C)
  std::shared_ptr<peakbench::nn::Linear> up, down;
};

class Experts : public torch::nn::Module {
 public:
  Experts(const Shape& shape, const at::TensorOptions& options);
  // (B, T, C) -> (B, T, C), and the router's logits (B T, E).
  std::vector<at::Tensor> forward(const at::Tensor& input) const;

  std::shared_ptr<peakbench::nn::Linear> gate;
  std::vector<std::shared_ptr<Expert>> experts;

 private:
  std::int64_t top_k_;
};

class Attention : public torch::nn::Module {
 public:
  Attention(const Shape& shape, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  // (B, T, C) -> (B, T, C)
  std::shared_ptr<peakbench::nn::Linear> qkv_proj, output_proj;

 private:
  std::int64_t heads_;
};

class Block : public torch::nn::Module {
 public:
  Block(const Shape& shape, const at::TensorOptions& options);
  // (B, T, C) -> (B, T, C), and the router's logits (B T, E).
  std::vector<at::Tensor> forward(peakbench::Model& model, const at::Tensor& input) const;
  std::shared_ptr<peakbench::nn::LayerNorm> norm_1, norm_2;
  std::shared_ptr<Attention> attention;
  std::shared_ptr<Experts> experts;
};

class Decoder : public torch::nn::Module {
 public:
  Decoder(const Shape& shape, const at::TensorOptions& options);
  std::shared_ptr<peakbench::nn::Embedding> embed;
  std::vector<std::shared_ptr<Block>> blocks;
  std::shared_ptr<peakbench::nn::LayerNorm> norm;
  std::shared_ptr<peakbench::nn::Linear> lm_head;
};

}  // namespace moe
