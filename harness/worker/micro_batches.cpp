#include "worker/micro_batches.h"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

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

}  // namespace peakbench::worker
