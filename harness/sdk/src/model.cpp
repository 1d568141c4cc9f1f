#include "peakbench/model.h"

#include <ATen/ATen.h>

namespace peakbench {
namespace {

at::Tensor run_wrapped(const std::vector<std::shared_ptr<BlockWrapper>>& wrappers,
                       std::size_t depth, std::size_t index, std::size_t count,
                       const BlockFunction& block, const std::vector<at::Tensor>& inputs) {
  if (depth == wrappers.size()) return block(inputs);
  // By value: a wrapper may keep the function until backward.
  BlockFunction inner = [&wrappers, depth, index, count, block](const std::vector<at::Tensor>& x) {
    return run_wrapped(wrappers, depth + 1, index, count, block, x);
  };
  return wrappers[depth]->run(index, count, inner, inputs);
}

}  // namespace

at::Tensor OutputHead::logits(const at::Tensor& hidden_states) const {
  return layer != nullptr ? layer->forward(hidden_states) : at::linear(hidden_states, weight, bias);
}

at::Tensor OutputHead::targets(const at::Tensor& labels) const {
  if (!shifts_labels) return labels;
  const at::Tensor padded = at::pad(labels, {0, 1}, "constant", static_cast<double>(ignore_index));
  return padded.slice(-1, 1).contiguous();
}

std::string OutputHead::why_not_plain() const {
  if (layer == nullptr) return {};
  if (layer->has_adapter()) return "the output head has an adapter";
  if (!layer->has_plain_weight()) return "the output head's weight is quantised";
  return {};
}

void Model::set_block_wrappers(std::vector<std::shared_ptr<BlockWrapper>> wrappers) {
  wrappers_ = std::move(wrappers);
  blocks_ = block_paths().size();
}

at::Tensor Model::run_block(std::size_t index, const BlockFunction& block,
                            const std::vector<at::Tensor>& inputs) {
  return run_wrapped(wrappers_, 0, index, blocks_, block, inputs);
}

}  // namespace peakbench
