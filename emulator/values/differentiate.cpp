#include "values/differentiate.h"

#include <ATen/SavedTensorHooks.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

namespace peakbench::values {
namespace {

namespace autograd = torch::autograd;

c10::impl::LocalDispatchKeySet with_autograd() {
  auto keys = c10::impl::tls_local_dispatch_key_set();
  keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
  return keys;
}

// Shared or intrusive, by release.
using NodePtr = decltype(autograd::Edge::function);

class Backward {
 public:
  explicit Backward(const std::vector<at::Tensor>& leaves) : found_(leaves.size()) {
    for (const at::Tensor& leaf : leaves)
      accumulators_.push_back(leaf.defined() ? autograd::impl::grad_accumulator(leaf) : NodePtr());
  }

  void give(const autograd::Edge& edge, const at::Tensor& gradient) {
    if (!edge.is_valid() || !gradient.defined()) return;
    const at::Tensor fitting = at::sum_to(
        gradient, C10_AS_INTARRAYREF_SLOW(
                      edge.function->input_metadata(edge.input_nr).shape_as_dim_vector()));
    for (std::size_t i = 0; i < accumulators_.size(); ++i)
      if (accumulators_[i] == edge.function) return add(found_[i], fitting);
    auto& waiting = waiting_[{edge.function->sequence_nr(), edge.function.get()}];
    waiting.node = edge.function;
    waiting.inputs.resize(edge.function->num_inputs());
    add(waiting.inputs[edge.input_nr], fitting);
  }

  // Whoever was called later comes first: what it calls on was made before it.
  std::vector<at::Tensor> run() {
    while (!waiting_.empty()) {
      auto next = waiting_.extract(waiting_.begin());
      Waiting& waiting = next.mapped();
      const auto results = (*waiting.node)(std::move(waiting.inputs));
      for (std::size_t i = 0; i < results.size(); ++i) give(waiting.node->next_edge(i), results[i]);
    }
    return std::move(found_);
  }

 private:
  static void add(at::Tensor& sum, const at::Tensor& gradient) {
    sum = sum.defined() ? sum + gradient : gradient;
  }

  struct Waiting {
    NodePtr node;
    autograd::variable_list inputs;
  };

  std::vector<NodePtr> accumulators_;
  std::vector<at::Tensor> found_;
  // Later calls first. Two of one number are told apart by where they lie.
  std::map<std::pair<std::uint64_t, autograd::Node*>, Waiting, std::greater<>> waiting_;
};

}  // namespace

Differentiable::Differentiable() : keys_(with_autograd()) {
  if (autograd::AnomalyMode::is_enabled()) C10_THROW_ERROR(Error, "anomalies are looked for");
  hooks_were_off_ = at::SavedTensorDefaultHooks::set_tracing(true);
}
Differentiable::~Differentiable() { at::SavedTensorDefaultHooks::set_tracing(hooks_were_off_); }

at::Tensor leaf_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.clone().detach().requires_grad_() : tensor;
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& outputs,
                                     const std::vector<at::Tensor>& given,
                                     const std::vector<at::Tensor>& leaves) {
  const at::NoGradGuard no_grad;
  Backward backward(leaves);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && outputs[i].requires_grad())
      backward.give(autograd::impl::gradient_edge(outputs[i]), given[i]);
  return backward.run();
}

}  // namespace peakbench::values
