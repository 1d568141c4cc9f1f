// A low-rank adapter beside a frozen linear layer: y = base(x) + B(A(x)) alpha / rank.
//
// The operators and lifetimes of peft 0.21.2 with dropout 0. Source: peft/tuners/lora/layer.py,
// class Linear, forward and reset_lora_parameters. https://arxiv.org/abs/2106.09685
#pragma once

#include "peakbench/nn.h"

namespace peakbench::lora {

struct AdapterShape {
  std::int64_t rank;
  double scaling;  // alpha / rank
};

// Parameters lora_A.default.weight: (rank, in) and lora_B.default.weight: (out, rank), on the
// base's device in `dtype`. A starts as torch.nn.Linear's weight does, B at zero.
class LowRankAdapter : public nn::LinearAdapter {
 public:
  LowRankAdapter(const nn::Linear& base, const AdapterShape& shape, at::ScalarType dtype);
  at::Tensor forward(const nn::Linear& base, const at::Tensor& x) override;

 private:
  std::shared_ptr<nn::Linear> a_, b_;
  double scaling_;
};

}  // namespace peakbench::lora
