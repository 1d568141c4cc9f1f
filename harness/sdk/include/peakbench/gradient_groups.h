// Groups parameters and their gradients into the lists that a kernel for many tensors takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "peakbench/update_rule.h"

namespace peakbench {

// A group of parameters and their gradients. The two lists have equal length and are never empty.
struct GradientGroup {
  std::vector<at::Tensor> parameters, gradients;
};

// Returns the parameters that have a gradient, and these gradients, in the order of `parameters`.
// kSingle gives one group. Other groupings give one group for each device and dtype of the
// parameters, as torch.optim does (_group_tensors_by_device_and_dtype).
std::vector<GradientGroup> gradient_groups(const std::vector<Parameter>& parameters,
                                           KernelGrouping grouping);

// Returns the gradients alone, with one list for each device and dtype of the gradients. The lists
// are ordered by the first gradient of each. Source: torch/utils/_foreach_utils.py,
// _group_tensors_by_device_and_dtype.
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
