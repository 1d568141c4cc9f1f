// A linear layer's weight in NF4. Forward and backward each make it whole for the time of their
// product; nothing of it is kept between them. As torchao's LinearNF4
// (torchao/dtypes/nf4tensor.py).
#pragma once

#include "nf4.h"
#include "peakbench/nn.h"

namespace peakbench::qlora {

// Buffers under torchao's names: quantized_data, quantized_scalers, quantization_factor,
// scaler_mean, nf4.
class Nf4Weight : public nn::LinearWeight {
 public:
  Nf4Weight(const nn::LinearLayer& layer, bool double_quantisation);
  at::Tensor linear(const at::Tensor& x, const at::Tensor& bias) override;
  at::Tensor dense() override;

 private:
  Nf4 nf4_;
  std::int64_t out_, in_;
};

}  // namespace peakbench::qlora
