// A model as a plugin offers it: built directly on a device in a dtype, with the operators and the
// parameter order of its reference implementation, so that it takes the same memory to the byte.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/memory.h"
#include "peakbench/nn.h"
#include "peakbench/options.h"

namespace peakbench {

struct BatchShape {
  std::int64_t batch_size = 1;
  std::int64_t sequence_length = 0;  // language models only
};

// On the model's device, made once before the first step. `input`: images (B, 3, H, W) or token ids
// (B, T) int64; `target`: labels (B, T) int64, or undefined where the loss needs none.
struct Batch {
  at::Tensor input, target;
};

// One repeated block. `inputs[0]` is the hidden state (B, T, C); a wrapper may call the function
// again later.
using BlockFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

// Runs blocks in a model's stead: recomputes, offloads, shards. Stateless between steps, or resets
// itself at block 0.
class BlockWrapper : public HoldsMemory {
 public:
  virtual at::Tensor run(std::size_t index, std::size_t count, const BlockFunction& block,
                         const std::vector<at::Tensor>& inputs) = 0;
};

// A linear layer by its part: q_proj, k_proj, v_proj, qkv_proj (the three in one), output_proj,
// mlp, output.
struct NamedLinear {
  std::string part, path;
  nn::LinearLayer* layer = nullptr;  // owned by the module
};

// The linear layer that makes the logits, and what the model's loss does with them: for loss heads
// that never hold all logits at once.
struct OutputHead {
  at::Tensor weight, bias;           // (V, C), (V); the bias undefined where there is none
  nn::LinearLayer* layer = nullptr;  // null where the weight is the embedding's (tied)
  bool shifts_labels = true;  // position t is held against label t + 1; the last against none
  std::int64_t ignore_index = -100;        // labels that count for nothing
  at::ScalarType loss_dtype = at::kFloat;  // what logits are converted to

  // hidden_states: (..., C) -> (..., V), through the layer's adapter where it has one.
  at::Tensor logits(const at::Tensor& hidden_states) const;
  // labels: (B, T) int64 -> the label that each position is held against, of the same shape.
  at::Tensor targets(const at::Tensor& labels) const;
  // Why `weight` cannot be used by itself ("it has an adapter"); empty where it can.
  std::string why_not_plain() const;
};

enum class DefaultUpdateRule { kAdam, kAdamW };

// How the loss of a batch follows from its samples' losses. Decides what a micro-batch's loss
// counts.
enum class LossReduction { kMean, kSum };

class Model {
 public:
  virtual ~Model() = default;

  virtual torch::nn::Module& module() = 0;
  virtual Batch make_batch(const BatchShape& shape) = 0;
  // Up to the final hidden states: what a loss head takes. ViT: (B, C); decoders: (B, T, C).
  virtual at::Tensor hidden_states(const Batch& batch) = 0;
  // The model's own loss head: a scalar. Logits are released when this returns. `hidden_states` is
  // this function's own, to be released as early as the model's reference does.
  virtual at::Tensor loss(at::Tensor hidden_states, const Batch& batch) = 0;
  // Of `loss`, and of a loss head in its stead.
  virtual LossReduction loss_reduction() const { return LossReduction::kMean; }
  virtual DefaultUpdateRule default_update_rule() const = 0;
  virtual std::vector<NamedLinear> linears() = 0;
  // Where the repeated blocks are in the module tree, in the order they run: "model.layers.0", ...
  virtual std::vector<std::string> block_paths() const = 0;
  // None where the loss is not the cross entropy of one linear layer's logits.
  virtual std::optional<OutputHead> output_head() { return std::nullopt; }
  // Why a part of linears() is absent ("its attention weights are packed"), for messages; empty
  // when unknown.
  virtual std::string why_no_linear(const std::string& part) const { return {}; }

  // Outermost first. Set by the worker from the recipe.
  void set_block_wrappers(std::vector<std::shared_ptr<BlockWrapper>> wrappers);

 protected:
  // Models run each repeated block through this.
  at::Tensor run_block(std::size_t index, const BlockFunction& block,
                       const std::vector<at::Tensor>& inputs);

 private:
  std::vector<std::shared_ptr<BlockWrapper>> wrappers_;
  std::size_t blocks_ = 0;
};

// What a plugin's factory is given. `tensor_options`: device and dtype of the parameters.
struct ModelContext {
  std::string id;
  Options options;
  at::TensorOptions tensor_options;
};

}  // namespace peakbench
