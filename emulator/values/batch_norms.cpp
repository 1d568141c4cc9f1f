// Batch normalisation in the two forms that only CUDA has: cuDNN's, and in parts, between which
// torch.nn.SyncBatchNorm gathers statistics of all ranks (torch/nn/modules/_functions.py; the
// formulas are those of aten/src/ATen/native/cuda/Normalization.cuh).
#include "values/equivalent_kernels.h"

namespace peakbench::values {
namespace {

// All but the channels, which are dimension 1.
std::vector<std::int64_t> but_channels(const at::Tensor& input) {
  std::vector<std::int64_t> dims{0};
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
  return dims;
}

// Of one number a channel, for an input of so many dimensions.
at::Tensor by_channel(const at::Tensor& one, const at::Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = one.numel();
  return one.view(shape);
}

// Statistics are of single precision where the input has less.
at::Tensor widened(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// running = (1 - momentum) * running + momentum * now
void move_towards(const c10::IValue& running, const at::Tensor& now, double momentum) {
  if (const auto tensor = optional_tensor(running)) tensor->mul_(1 - momentum).add_(now, momentum);
}

// Of each rank that took part, how many values a channel has.
at::Tensor counts_of(const c10::IValue& counts, const at::Tensor& means) {
  if (counts.isInt())
    return at::full({means.size(0), 1}, counts.toInt(), means.options().dtype(at::kDouble));
  return counts.toTensor().reshape({means.size(0), 1}).to(at::kDouble);
}

}  // namespace

// (input, weight, bias, running_mean, running_var, training, momentum, epsilon)
void batch_norm(Stack& stack) {
  auto [out, mean, deviation] =
      at::native_batch_norm(stack[0].toTensor(), stack[1].toTensor(), optional_tensor(stack[2]),
                            optional_tensor(stack[3]), optional_tensor(stack[4]), stack[5].toBool(),
                            stack[6].toDouble(), stack[7].toDouble());
  stack = {out, mean, deviation};
}

// (input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserve);
// save_var is 1 / deviation, as above.
void batch_norm_backward(Stack& stack) {
  auto [input, weight, bias] = at::native_batch_norm_backward(
      stack[1].toTensor(), stack[0].toTensor(), optional_tensor(stack[2]),
      optional_tensor(stack[3]), optional_tensor(stack[4]), optional_tensor(stack[5]),
      optional_tensor(stack[6]), true, stack[7].toDouble(), {true, true, true});
  stack = {input, weight, bias};
}

// (input, eps) -> (mean, 1 / deviation)
void batch_norm_stats(Stack& stack) {
  const at::Tensor input = widened(stack[0].toTensor());
  auto [variance, mean] = at::var_mean(input, but_channels(input), 0);
  stack = {mean, (variance + stack[1].toDouble()).rsqrt()};
}

// (input, means, invstds, running_mean, running_var, momentum, eps, counts), the second and third a
// row a rank -> (mean, 1 / deviation) of all together
void batch_norm_gather_stats(Stack& stack) {
  const at::Tensor means = stack[1].toTensor().to(at::kDouble);
  const at::Tensor variances = stack[2].toTensor().to(at::kDouble).pow(-2).sub(stack[6].toDouble());
  const double momentum = stack[5].toDouble();
  const at::Tensor counts = counts_of(stack[7], means), all = counts.sum();
  const at::Tensor mean = (means * counts).sum(0) / all;
  const at::Tensor squares = ((variances + (means - mean).square()) * counts).sum(0);
  move_towards(stack[3], mean, momentum);
  move_towards(stack[4], squares / (all - 1), momentum);
  stack = {mean, (squares / all + stack[6].toDouble()).rsqrt()};
}

// (input, weight, bias, mean, invstd, eps)
void batch_norm_elements(Stack& stack) {
  const at::Tensor input = widened(stack[0].toTensor());
  at::Tensor out =
      (input - by_channel(stack[3].toTensor(), input)) * by_channel(stack[4].toTensor(), input);
  if (const auto weight = optional_tensor(stack[1])) out = out * by_channel(*weight, input);
  if (const auto bias = optional_tensor(stack[2])) out = out + by_channel(*bias, input);
  stack = {std::move(out)};
}

// (grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g) -> (sum_dy, sum_dy_xmu,
// grad_weight, grad_bias)
void batch_norm_backward_sums(Stack& stack) {
  const at::Tensor gradient = widened(stack[0].toTensor()), input = widened(stack[1].toTensor());
  const auto dims = but_channels(input);
  const at::Tensor sum = gradient.sum(dims);
  const at::Tensor weighted =
      (gradient * (input - by_channel(stack[2].toTensor(), input))).sum(dims);
  stack = {sum, weighted, weighted * stack[3].toTensor(), sum.clone()};
}

// (grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count)
void batch_norm_backward_elements(Stack& stack) {
  const at::Tensor gradient = widened(stack[0].toTensor()), input = widened(stack[1].toTensor());
  const at::Tensor inverse = stack[3].toTensor();
  const at::Tensor all = stack[7].toTensor().sum().to(at::kDouble);
  const at::Tensor mean_gradient = stack[5].toTensor() / all;
  const at::Tensor slope = stack[6].toTensor() / all * inverse.square();
  const auto weight = optional_tensor(stack[4]);
  const at::Tensor factor = weight ? inverse * *weight : inverse;
  stack = {(gradient - by_channel(mean_gradient, input) -
            (input - by_channel(stack[2].toTensor(), input)) * by_channel(slope, input)) *
           by_channel(factor, input)};
}

}  // namespace peakbench::values
