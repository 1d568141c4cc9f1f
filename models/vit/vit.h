// torchvision.models.vision_transformer.VisionTransformer as a module tree: same names, same order
// of parameters.
#pragma once

#include "encoder.h"

namespace peakbench::vit {

struct VitShape {
  EncoderShape encoder;
  std::int64_t image, patch, classes = 1000;
};

class VisionTransformer : public torch::nn::Module {
 public:
  VisionTransformer(const VitShape& shape, const at::TensorOptions& options);
  at::Tensor patches(const at::Tensor& images) const;  // (B, 3, H, W) -> (B, T - 1, C)

  VitShape shape;
  at::Tensor class_token;  // (1, 1, C)
  std::shared_ptr<nn::Conv2d> conv_proj;
  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<nn::Linear> head;
};

}  // namespace peakbench::vit
