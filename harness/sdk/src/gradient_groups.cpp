#include "peakbench/gradient_groups.h"

#include <algorithm>

namespace peakbench {
namespace {

bool belongs_to(const GradientGroup& group, const at::Tensor& parameter) {
  const at::Tensor& first = group.parameters.front();
  return first.device() == parameter.device() && first.scalar_type() == parameter.scalar_type();
}

}  // namespace

std::vector<GradientGroup> gradient_groups(const std::vector<Parameter>& parameters,
                                           KernelGrouping grouping) {
  std::vector<GradientGroup> groups;
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.grad().defined()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const GradientGroup& one) {
      return grouping == KernelGrouping::kSingle || belongs_to(one, parameter);
    });
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->parameters.push_back(parameter);
    group->gradients.push_back(parameter.grad());
  }
  return groups;
}

}  // namespace peakbench
