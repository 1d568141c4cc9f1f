// Parameters and their gradients, as the lists that a kernel for many tensors takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "peakbench/update_rule.h"

namespace peakbench {

// Lists of equal length, never empty.
struct GradientGroup {
  std::vector<at::Tensor> parameters, gradients;
};

// Those of `parameters` that have a gradient, in their order. kSingle: one group. Otherwise a group
// for each device and dtype, as torch.optim makes them (_group_tensors_by_device_and_dtype).
std::vector<GradientGroup> gradient_groups(const std::vector<Parameter>& parameters,
                                           KernelGrouping grouping);

// The gradients alone, a list for each device and dtype, in the order of the first of each.
// torch/utils/_foreach_utils.py, _group_tensors_by_device_and_dtype
inline std::vector<std::vector<at::Tensor>> grouped_gradients(
    const std::vector<Parameter>& parameters) {
  std::vector<std::vector<at::Tensor>> groups;
  for (const Parameter& parameter : parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined()) continue;
    const auto alike = [&](const std::vector<at::Tensor>& group) {
      return group.front().device() == gradient.device() &&
             group.front().scalar_type() == gradient.scalar_type();
    };
    auto group = std::find_if(groups.begin(), groups.end(), alike);
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<at::Tensor>());
    group->push_back(gradient);
  }
  return groups;
}

}  // namespace peakbench
