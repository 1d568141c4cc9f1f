// cuDNN's convolutions, as at::convolution computes them on the CPU.
#include "values/equivalent_kernels.h"

namespace peakbench::values {
namespace {

struct Geometry {
  std::vector<std::int64_t> padding, stride, dilation;
  std::int64_t groups;
};

at::Tensor convolve(const Stack& stack, const std::optional<at::Tensor>& bias, const Geometry& g) {
  return at::convolution(stack[0].toTensor(), stack[1].toTensor(), bias, g.stride, g.padding,
                         g.dilation, false, std::vector<std::int64_t>(g.padding.size(), 0),
                         g.groups);
}

// Of the fused ones: (..., stride, padding, dilation, groups), from this argument on.
Geometry geometry_from(const Stack& stack, std::size_t at) {
  return {stack[at + 1].toIntVector(), stack[at].toIntVector(), stack[at + 2].toIntVector(),
          stack[at + 3].toInt()};
}

}  // namespace

// (input, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32)
void convolution(Stack& stack) {
  at::Tensor out = convolve(
      stack, std::nullopt,
      {stack[2].toIntVector(), stack[3].toIntVector(), stack[4].toIntVector(), stack[5].toInt()});
  stack = {std::move(out)};
}

// (input, weight, padding, output_padding, stride, dilation, groups, ...)
void transposed_convolution(Stack& stack) {
  at::Tensor out =
      at::convolution(stack[0].toTensor(), stack[1].toTensor(), std::nullopt,
                      stack[4].toIntVector(), stack[2].toIntVector(), stack[5].toIntVector(), true,
                      stack[3].toIntVector(), stack[6].toInt());
  stack = {std::move(out)};
}

// (input, weight, bias, stride, padding, dilation, groups)
void convolution_relu(Stack& stack) {
  at::Tensor out = convolve(stack, optional_tensor(stack[2]), geometry_from(stack, 3));
  stack = {out.relu_()};
}

// (input, weight, z, alpha, bias, stride, padding, dilation, groups)
void convolution_add_relu(Stack& stack) {
  const auto alpha = stack[3].isNone() ? at::Scalar(1) : stack[3].toScalar();
  at::Tensor out = convolve(stack, optional_tensor(stack[4]), geometry_from(stack, 5));
  out = out.add_(stack[2].toTensor(), alpha).relu_();
  stack = {std::move(out)};
}

}  // namespace peakbench::values
