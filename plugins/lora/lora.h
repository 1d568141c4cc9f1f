#pragma once

#include "peakbench/nn.h"

namespace peakbench::lora {

// A low-rank adapter beside a frozen linear layer: y = base(x) + B(A(dropout(x))) scaling.
//
// The operators and lifetimes of peft 0.21.2. Source: peft/tuners/lora/layer.py, class Linear,
// forward and reset_lora_parameters. https://arxiv.org/abs/2106.09685

struct AdapterShape {
  std::int64_t rank;
  double scaling;      // alpha / rank, or alpha / sqrt(rank)
  double dropout = 0;  // of the adapter's input
};

// Parameters lora_A.default.weight: (rank, in) and lora_B.default.weight: (out, rank), on the
// base's device in `dtype`. A starts as torch.nn.Linear's weight does, B at zero.
class LowRankAdapter : public nn::LinearAdapter {
 public:
  LowRankAdapter(const nn::LinearLayer& base, const AdapterShape& shape, at::ScalarType dtype);
  at::Tensor forward(const nn::LinearLayer& base, const at::Tensor& x) override;

 protected:
  // The base's result with the adapter's part. x: (..., in) in the adapter's dtype.
  virtual at::Tensor add_to(const at::Tensor& result, const nn::LinearLayer& base,
                            const at::Tensor& x);
  // B(A(x)), not scaled. (..., in) -> (..., out)
  at::Tensor low_rank(const at::Tensor& x) const;
  at::ScalarType dtype() const { return a_->weight.scalar_type(); }
  // A Python number reaches an operator as a wrapped tensor, which autograd may keep (8 bytes).
  at::Tensor scaling() const;

 private:
  std::shared_ptr<nn::Linear> a_, b_;
  double scaling_, dropout_;
};

// peft's ModuleDict of adapters by name.
class Adapters : public torch::nn::Module {};

// A low-rank adapter whose result is turned, not lengthened: the layer's weight W + B A scaling is
// brought to length 1 row by row, and a trained vector, the magnitude, gives each row its length.
//
// The operators and lifetimes of peft 0.21.2 with dropout 0. Source: peft/tuners/lora/dora.py,
// class DoraLinearLayer. The norm counts as a constant in backward (section 4.3 of
// https://arxiv.org/abs/2402.09353).

// Adds the parameter lora_magnitude_vector.default.weight: (out). It starts at the norm of each row
// of the base's weight, so that the layer's result is what it was.
class DoraAdapter : public LowRankAdapter {
 public:
  DoraAdapter(const nn::LinearLayer& base, const AdapterShape& shape, at::ScalarType dtype);

 protected:
  // For a moment takes the base's weight in the adapter's dtype, where that is another, and three
  // matrices as large, besides an identity (in, in).
  at::Tensor add_to(const at::Tensor& result, const nn::LinearLayer& base,
                    const at::Tensor& x) override;

 private:
  at::Tensor weight_norm(const at::Tensor& weight, const at::Tensor& update) const;  // (out)

  at::Tensor magnitude_;
};

}  // namespace peakbench::lora
