#include "peakbench/model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "peakbench/batch.h"
#include "peakbench/errors.h"
#include "peakbench/language_model.h"
#include "peakbench/linear_parts.h"
#include "peakbench/observer.h"

namespace peakbench {

const at::Tensor& Batch::at(const std::string& name) const {
  std::string there;
  for (const NamedTensor& one : named) {
    if (one.name == name) return one.tensor;
    there += (there.empty() ? "" : ", ") + one.name;
  }
  throw std::out_of_range("the batch has no tensor \"" + name + "\"; it has " +
                          (there.empty() ? "none by name" : there));
}

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

namespace peakbench::language_model {

at::Tensor make_positions(std::int64_t length, const at::Device& device) {
  const at::Tensor positions = at::arange(length, at::TensorOptions(at::kLong).device(device)) + 0;
  return positions.unsqueeze(0);
}

void look_for_packed_sequences(at::Tensor positions, std::int64_t batch) {
  if (batch != 1) positions = positions.expand({batch, -1});
  const at::Tensor before_first = positions.slice(1, 0, 1) - 1;
  const at::Tensor steps = at::diff(positions, 1, -1, before_first);
  const at::Tensor sequence = (steps != 1).cumsum(-1);
  (sequence.select(1, -1) == 0).all();
}

TiedHead::TiedHead(std::shared_ptr<nn::Embedding> embedding) : embedding_(std::move(embedding)) {}

at::Tensor TiedHead::forward(const at::Tensor& x) const {
  ModuleScope scope(*this);
  return at::linear(x, embedding_->weight);
}

at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& labels) {
  constexpr std::int64_t kIgnored = -100;
  const at::Tensor scores = logits.to(at::kFloat).view({-1, logits.size(-1)});  // (B T, V)
  const at::Tensor padded = at::pad(labels, {0, 1}, "constant", kIgnored);      // (B, T + 1)
  const at::Tensor targets = padded.slice(-1, 1).contiguous().view(-1);         // (B T)
  return at::cross_entropy_loss(scores, targets, /*weight=*/{}, at::Reduction::Mean, kIgnored,
                                /*label_smoothing=*/0.0);
}

}  // namespace peakbench::language_model

namespace peakbench {
namespace {

using Numbers = std::map<std::string, std::optional<std::int64_t>>;

// "q_proj:mlp=16" as the manifest's rules let it through.
Numbers parse(const std::string& value) {
  Numbers numbers;
  std::istringstream text(value);
  for (std::string part; std::getline(text, part, ':');) {
    const auto equals = part.find('=');
    auto& number = numbers[part.substr(0, equals)];
    if (equals != std::string::npos) number = std::stoll(part.substr(equals + 1));
  }
  return numbers;
}

std::vector<ChosenLinear> those_of(Model& model, const Numbers& numbers) {
  std::vector<ChosenLinear> chosen;
  for (const NamedLinear& linear : model.linears()) {
    const auto found = numbers.find(linear.part);
    if (found != numbers.end()) chosen.push_back({linear, found->second});
  }
  return chosen;
}

void need_every_part(const Model& model, const Numbers& numbers,
                     const std::vector<ChosenLinear>& chosen) {
  for (const auto& [part, number] : numbers) {
    const auto is_of = [&part = part](const ChosenLinear& one) { return one.linear.part == part; };
    if (std::any_of(chosen.begin(), chosen.end(), is_of)) continue;
    const std::string why = model.why_no_linear(part);
    throw Unsupported("this model has no " + part + " layer" + (why.empty() ? "" : ": " + why));
  }
}

}  // namespace

std::vector<ChosenLinear> choose_linears(Model& model, const std::string& value,
                                         const std::vector<std::string>& automatic) {
  if (value != "auto") {
    const Numbers numbers = parse(value);
    auto chosen = those_of(model, numbers);
    need_every_part(model, numbers, chosen);
    return chosen;
  }
  for (const std::string& parts : automatic)
    if (auto chosen = those_of(model, parse(parts)); !chosen.empty()) return chosen;
  throw Unsupported("this model has none of the linear layers that `auto` stands for");
}

}  // namespace peakbench
