#include "vision_transformer.h"

#include <ATen/ATen.h>

#include <cmath>

namespace peakbench::vit {
namespace {

class Heads : public torch::nn::Module {};  // nn.Sequential of one Linear "head"

}  // namespace

VisionTransformer::VisionTransformer(const VitShape& s, const at::TensorOptions& options)
    : shape(s) {
  const std::int64_t width = shape.encoder.width;
  class_token = register_parameter("class_token", at::zeros({1, 1, width}, options));
  conv_proj = register_module(
      "conv_proj", std::make_shared<nn::Conv2d>(3, width, shape.patch, shape.patch, options));
  encoder = register_module("encoder", std::make_shared<Encoder>(shape.encoder, options));
  auto heads = register_module("heads", std::make_shared<Heads>());
  head = heads->register_module("head",
                                std::make_shared<nn::Linear>(width, shape.classes, true, options));

  at::NoGradGuard no_grad;
  const double fan_in = 3.0 * static_cast<double>(shape.patch * shape.patch);
  conv_proj->weight.normal_(
      0, std::sqrt(1.0 / fan_in));  // torchvision cuts it at two; the memory is the same
  conv_proj->bias.zero_();
  // torchvision's head starts at zero, and then no gradient reaches the encoder in the first step.
  // A small one keeps every step of a comparison meaningful.
  head->weight.normal_(0, 0.02);
  head->bias.zero_();
}

at::Tensor VisionTransformer::patches(const at::Tensor& images) const {
  const std::int64_t batch = images.size(0), side = images.size(2) / shape.patch;
  at::Tensor x = conv_proj->forward(images);  // (B, C, side, side)
  x = x.reshape({batch, shape.encoder.width, side * side});
  return x.permute({0, 2, 1});
}

}  // namespace peakbench::vit
