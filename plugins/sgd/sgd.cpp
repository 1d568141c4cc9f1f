#include "sgd.h"

#include "peakbench/errors.h"

namespace peakbench::sgd {

Sgd::Sgd(SgdOptions options) : options_(options) {
  if (options_.nesterov && options_.momentum == 0)
    throw OptionError("sgd: nesterov=true needs a momentum above 0, such as momentum=0.9");
}

void Sgd::update(const std::vector<Parameter>& parameters, KernelGrouping grouping) {
  if (grouping == KernelGrouping::kFused)
    throw Unsupported("sgd has no fused kernel: it updates with foreach or single kernels");
  for (GradientGroup& group : gradient_groups(parameters, grouping)) {
    Buffers buffers;
    if (options_.momentum != 0) {
      for (const at::Tensor& parameter : group.parameters)
        buffers.push_back(momentum_buffers_.of(parameter, [] { return at::Tensor(); }));
    }
    grouping == KernelGrouping::kForeach ? sgd_foreach(group, buffers, options_)
                                         : sgd_single(group, buffers, options_);
    for (std::size_t i = 0; i < buffers.size(); ++i)
      *momentum_buffers_.find(group.parameters[i]) = buffers[i];
  }
}

void Sgd::visit_state(const StateVisitor& visit) {
  for (auto& [parameter, buffer] : momentum_buffers_) visit(parameter, "momentum_buffer", buffer);
}

void Sgd::forget(const at::Tensor& parameter) { momentum_buffers_.forget(parameter); }

}  // namespace peakbench::sgd
