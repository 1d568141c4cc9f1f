// Convolution without a bias and batch normalisation, with the operators, names and order of their
// torch.nn namesakes. Source: torch/nn/modules/conv.py, torch/nn/modules/batchnorm.py.
#pragma once

#include "peakbench/nn.h"

namespace peakbench::resnet {

// Device and dtype of the parameters, and how matrices of images lie in memory.
struct Placement {
  at::TensorOptions options;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
};

// Square kernel, padded so that stride 1 keeps the size. weight: (out, in, k, k), drawn as
// torchvision's ResNet draws it: kaiming_normal_, fan_out.
class Conv2d : public torch::nn::Module {
 public:
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
         const Placement& placement);
  at::Tensor forward(const at::Tensor& x) const;  // (B, in, H, W) -> (B, out, H', W')
  at::Tensor weight;

 private:
  std::int64_t stride_, padding_;
};

// In training: normalises by the batch's own statistics, and moves the running ones towards them.
// weight, bias, running_mean, running_var: (C); num_batches_tracked: () int64. The last three are
// buffers.
class BatchNorm2d : public torch::nn::Module {
 public:
  BatchNorm2d(std::int64_t features, const at::TensorOptions& options);
  at::Tensor forward(const at::Tensor& x) const;  // (B, C, H, W) -> (B, C, H, W)
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

}  // namespace peakbench::resnet
