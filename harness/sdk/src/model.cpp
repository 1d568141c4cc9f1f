#include "peakbench/model.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace peakbench {
namespace {

using TensorVector = std::vector<at::Tensor>;
using Wrappers = std::vector<std::shared_ptr<BlockWrapper>>;

// A block, or a part of one: what wrappers are told of it.
struct Place {
  const std::string* part;  // null: the block itself
  std::size_t index, count;
};

TensorVector run_wrapped(const Wrappers& wrappers, std::size_t depth, const Place& place,
                         const BlockFunction& function, const TensorVector& inputs) {
  if (depth == wrappers.size()) return function(inputs);
  // By value: a wrapper may keep the function until backward.
  const BlockFunction inner = [&wrappers, depth, place, function](const TensorVector& x) {
    return run_wrapped(wrappers, depth + 1, place, function, x);
  };
  BlockWrapper& wrapper = *wrappers[depth];
  if (place.part == nullptr) return wrapper.run(place.index, place.count, inner, inputs);
  return wrapper.run_part(*place.part, place.index, place.count, inner, inputs);
}

BlockFunction of_several(TensorFunction function) {
  return [function = std::move(function)](const TensorVector& inputs) {
    return TensorVector{function(inputs)};
  };
}

// Strategies ask block_paths() which parameters are a block's. `blocks`: how many were counted when
// wrappers were set; nobody has to set any.
void need_path(const Model& model, std::size_t index, std::size_t blocks) {
  if (index < blocks) return;
  const auto paths = model.block_paths().size();
  if (index < paths) return;
  throw std::logic_error("run_block runs block " + std::to_string(index) +
                         ", counted from 0, and block_paths() names " + std::to_string(paths) +
                         ": name every block, in the order they run");
}

// What a function of one tensor gave; nothing else holds it any longer.
at::Tensor the_one(TensorVector outputs) { return std::move(outputs.at(0)); }

at::Tensor run_embedding(const std::vector<std::shared_ptr<EmbeddingWrapper>>& wrappers,
                         std::size_t depth, const EmbedFunction& embed, const Batch& batch) {
  if (depth == wrappers.size()) return embed(batch);
  const EmbedFunction inner = [&wrappers, depth, embed](const Batch& of) {
    return run_embedding(wrappers, depth + 1, embed, of);
  };
  return wrappers[depth]->run(inner, batch);
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

// While one lives, parts belong to this block. A block that runs again in backward makes one anew.
class Model::InBlock {
 public:
  InBlock(Model& model, std::size_t index)
      : model_(model), before_(std::exchange(model.current_block_, index)) {}
  ~InBlock() { model_.current_block_ = before_; }
  InBlock(const InBlock&) = delete;
  InBlock& operator=(const InBlock&) = delete;

 private:
  Model& model_;
  std::optional<std::size_t> before_;
};

void Model::set_block_wrappers(const Wrappers& wrappers) {
  block_wrappers_.clear();
  part_wrappers_.clear();
  for (const auto& wrapper : wrappers) {
    const auto parts = wrapper->parts();
    if (parts.empty()) block_wrappers_.push_back(wrapper);
    for (const std::string& part : parts) part_wrappers_[part].push_back(wrapper);
  }
  blocks_ = block_paths().size();
}

void Model::set_embedding_wrappers(std::vector<std::shared_ptr<EmbeddingWrapper>> wrappers) {
  embedding_wrappers_ = std::move(wrappers);
}

at::Tensor Model::run_block(std::size_t index, const TensorFunction& block,
                            const TensorVector& inputs) {
  need_path(*this, index, blocks_);
  if (!block_wrappers_.empty()) return the_one(run_block(index, of_several(block), inputs));
  const InBlock scope(*this, index);
  return block(inputs);
}

TensorVector Model::run_block(std::size_t index, const BlockFunction& block,
                              const TensorVector& inputs) {
  need_path(*this, index, blocks_);
  const BlockFunction inside = [this, index, block](const TensorVector& x) {
    const InBlock scope(*this, index);
    return block(x);
  };
  return run_wrapped(block_wrappers_, 0, {nullptr, index, blocks_}, inside, inputs);
}

std::size_t Model::current_block(const std::string& part) const {
  if (current_block_) return *current_block_;
  throw std::logic_error("run_part(\"" + part +
                         "\") is called outside of a block: blocks run through run_block");
}

at::Tensor Model::run_part(const std::string& part, const TensorFunction& function,
                           const TensorVector& inputs) {
  current_block(part);
  if (!part_wrappers_.contains(part)) return function(inputs);
  return the_one(run_part(part, of_several(function), inputs));
}

TensorVector Model::run_part(const std::string& part, const BlockFunction& function,
                             const TensorVector& inputs) {
  const std::size_t index = current_block(part);
  const auto found = part_wrappers_.find(part);
  if (found == part_wrappers_.end()) return function(inputs);
  return run_wrapped(found->second, 0, {&found->first, index, blocks_}, function, inputs);
}

at::Tensor Model::embed(const Batch&) {
  throw std::logic_error(
      "this model has no embed; one that calls run_embed overrides it, and declares the fact "
      "embedding");
}

at::Tensor Model::run_embed(const Batch& batch) {
  const EmbedFunction own = [this](const Batch& of) { return embed(of); };
  return run_embedding(embedding_wrappers_, 0, own, batch);
}

}  // namespace peakbench
