#include "worker/loss_checks.h"

#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace peakbench::worker {
namespace {

using torch::autograd::Node;

// The tensors that backward would give a gradient to.
std::vector<at::Tensor> leaves_of(const at::Tensor& loss) {
  std::vector<at::Tensor> leaves;
  std::vector<const Node*> open{torch::autograd::impl::gradient_edge(loss).function.get()};
  std::unordered_set<const Node*> met{open.front()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == nullptr) continue;
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node))
      leaves.push_back(leaf->variable);
    for (const torch::autograd::Edge& edge : node->next_edges())
      if (met.insert(edge.function.get()).second) open.push_back(edge.function.get());
  }
  return leaves;
}

// And what the step was given, which nobody trains.
std::unordered_set<const at::TensorImpl*> registered_in(const torch::nn::Module& module,
                                                        const Batch& batch) {
  std::unordered_set<const at::TensorImpl*> known{batch.input.unsafeGetTensorImpl(),
                                                  batch.target.unsafeGetTensorImpl()};
  for (const auto& one : batch.named) known.insert(one.tensor.unsafeGetTensorImpl());
  for (const auto& item : module.named_parameters())
    known.insert(item.value().unsafeGetTensorImpl());
  return known;
}

}  // namespace

at::Tensor scalar(at::Tensor loss) {
  if (!loss.defined()) throw std::logic_error("it must return a scalar tensor");
  if (loss.numel() != 1)
    throw std::logic_error(c10::str("it must return a scalar tensor, not one of ", loss.sizes()));
  return loss;
}

void RegisteredParameters::check(const at::Tensor& loss, const torch::nn::Module& module,
                                 const Batch& batch, const Owner& owner, std::int64_t step) {
  if (step > 1 || !loss.requires_grad()) return;
  const auto registered = registered_in(module, batch);
  for (const at::Tensor& leaf : leaves_of(loss)) {
    if (registered.contains(leaf.unsafeGetTensorImpl())) continue;
    if (step == 0) {
      of_first_step_.emplace_back(leaf.getIntrusivePtr());
    } else if (std::ranges::any_of(of_first_step_, [&](const WeakTensor& one) {
                 return one.lock().get() == leaf.unsafeGetTensorImpl();
               })) {
      throw PluginError(owner.path + ": the loss of " + owner.id +
                        c10::str(" trains a tensor of ", leaf.sizes()) +
                        " that is no parameter of its module tree, so that nothing updates it: "
                        "make it one with register_parameter");
    }
  }
}

}  // namespace peakbench::worker
