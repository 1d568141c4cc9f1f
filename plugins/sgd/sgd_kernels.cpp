#include <ATen/ATen.h>

#include <algorithm>

#include "sgd.h"

namespace peakbench::sgd {
namespace {

void advance(at::Tensor& buffer, const at::Tensor& gradient, double momentum) {
  if (buffer.defined())
    buffer.mul_(momentum).add_(gradient, 1);
  else
    buffer = gradient.detach().clone();  // not momentum times zero: as torch.optim starts
}

void advance_all(Buffers& buffers, const std::vector<at::Tensor>& gradients, double momentum) {
  const bool all = std::all_of(buffers.begin(), buffers.end(),
                               [](const at::Tensor& buffer) { return buffer.defined(); });
  if (all) {
    at::_foreach_mul_(buffers, momentum);
    at::_foreach_add_(buffers, gradients, 1);
  } else {
    for (std::size_t i = 0; i < buffers.size(); ++i) advance(buffers[i], gradients[i], momentum);
  }
}

}  // namespace

void sgd_single(GradientGroup& group, Buffers& buffers, const SgdOptions& options) {
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    at::Tensor& parameter = group.parameters[i];
    at::Tensor direction = group.gradients[i];
    if (options.weight_decay != 0) direction = direction.add(parameter, options.weight_decay);
    if (options.momentum != 0) {
      advance(buffers[i], direction, options.momentum);
      direction = options.nesterov ? direction.add(buffers[i], options.momentum) : buffers[i];
    }
    parameter.add_(direction, -options.lr);
  }
}

void sgd_foreach(GradientGroup& group, Buffers& buffers, const SgdOptions& options) {
  std::vector<at::Tensor> directions = group.gradients;
  if (options.weight_decay != 0)
    directions = at::_foreach_add(directions, group.parameters, options.weight_decay);
  if (options.momentum != 0) {
    advance_all(buffers, directions, options.momentum);
    // In place: without weight decay these are the gradients themselves, as in torch.optim.
    if (options.nesterov)
      at::_foreach_add_(directions, buffers, options.momentum);
    else
      directions = buffers;
  }
  at::_foreach_add_(group.parameters, directions, -options.lr);
}

}  // namespace peakbench::sgd
