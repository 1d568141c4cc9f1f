#include "worker/losses.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "peakbench/errors.h"

namespace peakbench::worker {
namespace {

at::Tensor part_of(const at::Tensor& tensor, std::int64_t start, std::int64_t size) {
  return tensor.defined() ? tensor.narrow(0, start, size) : tensor;
}

at::Tensor number(const at::Scalar& scalar) { return at::native::wrapped_scalar_tensor(scalar); }

}  // namespace

std::vector<std::int64_t> micro_batch_sizes(std::int64_t samples, std::int64_t parts) {
  if (parts < 1 || parts > samples) {
    throw Unsupported("a batch of " + std::to_string(samples) + " cannot be split into " +
                      std::to_string(parts) + " micro-batches");
  }
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), samples / parts);
  for (std::int64_t i = 0; i < samples % parts; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::vector<MicroBatch> split(const Batch& batch, std::int64_t parts) {
  const std::int64_t samples = batch.input.size(0);
  if (parts == 1) return {{batch, samples, {}}};
  std::vector<MicroBatch> split;
  std::int64_t start = 0;
  for (const std::int64_t size : micro_batch_sizes(samples, parts)) {
    Batch part{part_of(batch.input, start, size), part_of(batch.target, start, size)};
    for (const NamedTensor& one : batch.named) {
      part.named.push_back(one);
      if (one.per_sample) part.named.back().tensor = part_of(one.tensor, start, size);
    }
    split.push_back({std::move(part), size, {}});
    start += size;
  }
  return split;
}

void share_by_tokens(std::vector<MicroBatch>& parts, const Batch& batch, const OutputHead& head) {
  const auto count = [&](const Batch& one) {
    return head.targets(one.target).ne(head.ignore_index).sum();
  };
  const at::Tensor all = count(batch);
  for (MicroBatch& part : parts) part.share = count(part.batch) / all;
}

at::Tensor weighted(const at::Tensor& loss, const MicroBatch& part,
                    const std::vector<MicroBatch>& parts, LossReduction reduction) {
  if (parts.size() == 1 || reduction == LossReduction::kSum) return loss;
  if (part.share.defined()) return loss * part.share;
  const bool even = parts.front().samples == parts.back().samples;
  // Equal parts are divided, as everybody's training loop does, so that bits are theirs. A Python
  // number reaches the operator as a wrapped tensor, which autograd keeps (8 bytes).
  if (even) return loss / number(static_cast<std::int64_t>(parts.size()));
  std::int64_t samples = 0;
  for (const MicroBatch& one : parts) samples += one.samples;
  return loss * number(static_cast<double>(part.samples) / static_cast<double>(samples));
}

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

namespace {

namespace generated = torch::autograd::generated;

// Samples [begin, end), or that many whose numbers the graph does not have.
struct Part {
  std::int64_t begin = 0, end = 0;
  bool is_placed = true;
};

std::int64_t from_end(std::int64_t index, std::int64_t size) {
  return std::clamp<std::int64_t>(index < 0 ? index + size : index, 0, size);
}

// What an operator that takes a part of the first dimension makes; nothing for all others.
std::optional<Part> part_of(const Node& node, const std::vector<std::int64_t>& sizes) {
  const auto dimensions = static_cast<std::int64_t>(sizes.size());
  const auto is_first = [&](std::int64_t dim) { return dim == 0 || dim == -dimensions; };
  if (const auto* slice = dynamic_cast<const generated::SliceBackward0*>(&node)) {
    if (!is_first(slice->dim)) return std::nullopt;
    const auto expected = [](const std::optional<c10::SymInt>& number, std::int64_t otherwise) {
      return number ? number->expect_int() : otherwise;
    };
    const std::int64_t begin = from_end(expected(slice->start, 0), sizes[0]);
    const std::int64_t end = from_end(expected(slice->end, sizes[0]), sizes[0]);
    const std::int64_t step = slice->step.expect_int();
    if (step == 1) return Part{begin, std::max(begin, end)};
    return Part{0, (std::max<std::int64_t>(end - begin, 0) + step - 1) / step, false};
  }
  if (const auto* select = dynamic_cast<const generated::SelectBackward0*>(&node)) {
    if (!is_first(select->dim)) return std::nullopt;
    const std::int64_t index = from_end(select->index.expect_int(), sizes[0]);
    return Part{index, index + 1};
  }
  const auto* selected = dynamic_cast<const generated::IndexSelectBackward0*>(&node);
  const bool indexes = dynamic_cast<const generated::IndexBackward0*>(&node) != nullptr;
  if (!indexes && (selected == nullptr || !is_first(selected->dim))) return std::nullopt;
  // The shape of the result tells, without the indices. A mask over several dimensions makes fewer
  // of them.
  const auto made = node.input_metadata(0).shape_as_dim_vector();
  const bool is_of_samples =
      made.size() == sizes.size() && std::equal(made.begin() + 1, made.end(), sizes.begin() + 1);
  if (!is_of_samples) return std::nullopt;
  return Part{0, made[0].expect_int(), false};
}

// The samples that the parts cover at most.
std::int64_t covered(const std::vector<Part>& parts, std::int64_t samples) {
  std::vector<bool> is_covered(static_cast<std::size_t>(samples));
  std::int64_t others = 0;
  for (const Part& part : parts) {
    if (!part.is_placed) others += part.end;
    for (std::int64_t i = part.begin; part.is_placed && i < std::min(part.end, samples); ++i)
      is_covered[static_cast<std::size_t>(i)] = true;
  }
  const auto placed = std::count(is_covered.begin(), is_covered.end(), true);
  return std::min<std::int64_t>(placed + others, samples);
}

}  // namespace

SamplesSeen::SamplesSeen(const at::Tensor& hidden_states)
    : hidden_(torch::autograd::impl::gradient_edge(hidden_states)),
      sizes_(hidden_states.sizes().vec()) {}

std::int64_t SamplesSeen::in(const at::Tensor& loss) const {
  if (sizes_.empty()) return 0;
  const std::int64_t samples = sizes_[0];
  if (hidden_.function == nullptr) return samples;
  std::vector<Part> parts;
  std::vector<const Node*> open{torch::autograd::impl::gradient_edge(loss).function.get()};
  std::unordered_set<const Node*> met{open.front(), hidden_.function.get()};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == nullptr) continue;
    if (node == hidden_.function.get()) return samples;  // the loss is the hidden states
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (edge == hidden_) {
        const auto part = part_of(*node, sizes_);
        if (!part) return samples;
        parts.push_back(*part);
      } else if (met.insert(edge.function.get()).second) {
        open.push_back(edge.function.get());
      }
    }
  }
  return covered(parts, samples);
}

}  // namespace peakbench::worker
