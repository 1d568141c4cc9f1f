#pragma once

#include <ATen/core/Tensor.h>

#include "peakbench/nn.h"

namespace peakbench::qlora {

// A matrix in NF4, four bits a value: each block of 64 values is divided by its largest, and
// rounded to a codebook of 16 values. With double quantisation the largest ones are quantised in
// turn.
//
// Layout, codebook and arithmetic of torchao's NF4Tensor (torchao/dtypes/nf4tensor.py, block size
// 64, scaler block size 256), of QLoRA (https://arxiv.org/abs/2305.14314), for n values of dtype D:
//
//   data      n / 2 bytes               two values a byte, the first in the upper half
//   scales    n / 64 bytes              int8, a block's largest value; float without double
//                                       quantisation, 4 bytes each
//   factors   n / 16384 D, rounded up   what the int8 of 256 blocks are divided by
//   mean      one D                     what is added to them then
//   codebook  16 D
//
// torchao wants whole groups of 256 blocks; here the last group may be smaller.

inline constexpr std::int64_t kBlock = 64;

struct Nf4 {
  at::Tensor data, scales;
  at::Tensor factors, mean;  // undefined without double quantisation
  at::Tensor codebook;

  at::ScalarType dtype() const { return codebook.scalar_type(); }  // the matrix's
};

// The number of values must be a multiple of kBlock. Without gradient. Besides the result, takes a
// copy where the matrix is not contiguous, and 18 D + 8 bytes for each of at most 2^20 values.
Nf4 quantise(const at::Tensor& matrix, bool double_quantisation);

// In the dtype of the matrix that was quantised. Besides the result, takes 3 D + 8 bytes for each
// of at most 2^20 values.
at::Tensor dequantise(const Nf4& nf4, at::IntArrayRef shape);

// A linear layer's weight in NF4. Forward and backward each make it whole for the time of their
// product; nothing of it is kept between them. As torchao's LinearNF4
// (torchao/dtypes/nf4tensor.py).

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
