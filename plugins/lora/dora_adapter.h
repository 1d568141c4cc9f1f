// A low-rank adapter whose result is turned, not lengthened: the layer's weight W + B A scaling is
// brought to length 1 row by row, and a trained vector, the magnitude, gives each row its length.
//
// The operators and lifetimes of peft 0.21.2 with dropout 0. Source: peft/tuners/lora/dora.py,
// class DoraLinearLayer. The norm counts as a constant in backward (section 4.3 of
// https://arxiv.org/abs/2402.09353).
#pragma once

#include "low_rank_adapter.h"

namespace peakbench::lora {

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
