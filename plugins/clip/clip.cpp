// torch.nn.utils.clip_grad_norm_ with its defaults: the same operators in the same order. Source:
// torch/nn/utils/clip_grad.py, _get_total_norm and _clip_grads_with_norm_.
#include <ATen/ATen.h>

#include <string>

#include "peakbench/gradient_groups.h"
#include "peakbench/plugin.h"

namespace peakbench {
namespace {

using Groups = std::vector<std::vector<at::Tensor>>;  // of one device and dtype each

class ClipNorm : public GradientTransform {
 public:
  ClipNorm(double max_norm, double norm_type) : max_norm_(max_norm), norm_type_(norm_type) {}

  bool apply(const std::vector<Parameter>& parameters) override {
    at::NoGradGuard no_grad;
    const Groups groups = grouped_gradients(parameters);
    if (groups.empty()) return true;
    // Always multiplied, by 1 where nothing is to be clipped: asking would read back from a device.
    const at::Tensor coefficient = coefficient_of(total_norm(groups));
    for (const auto& group : groups)
      at::_foreach_mul_(group, coefficient.to(group.front().device()));
    return true;
  }

 private:
  // Of the norms: a scalar on the first gradient's device.
  at::Tensor total_norm(const Groups& groups) const {
    std::vector<at::Tensor> norms;
    for (const auto& group : groups)
      for (at::Tensor& norm : at::_foreach_norm(group, norm_type_)) norms.push_back(norm);
    for (at::Tensor& norm : norms) norm = norm.to(groups.front().front().device());
    const at::Tensor stacked = at::stack(norms);
    return at::linalg_vector_norm(stacked, norm_type_);
  }

  at::Tensor coefficient_of(const at::Tensor& total_norm) const {
    at::Tensor coefficient = total_norm + kAgainstZero;
    coefficient = coefficient.reciprocal();  // number / tensor, as Python writes it
    coefficient = coefficient * max_norm_;
    return at::clamp(coefficient, std::nullopt, 1.0);
  }

  static constexpr double kAgainstZero = 1e-6;

  double max_norm_, norm_type_;
};

void apply(const StrategyContext& context, Recipe& recipe, Model&) {
  const Options& options = context.options;
  recipe.gradient_transforms.push_back(std::make_shared<ClipNorm>(
      options.number("max_norm"), std::stod(options.string("norm_type"))));
}

}  // namespace
}  // namespace peakbench

PEAKBENCH_STRATEGY_PLUGIN(peakbench::apply)
