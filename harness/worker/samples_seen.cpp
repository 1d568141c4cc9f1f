#include "worker/samples_seen.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/generated/Functions.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

namespace peakbench::worker {
namespace {

namespace generated = torch::autograd::generated;
using torch::autograd::Node;

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
