// A model as a plugin offers it: built directly on a device in a dtype, with the operators and the
// parameter order of its reference implementation, so that it takes the same memory to the byte.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
class BlockWrapper {
 public:
  virtual ~BlockWrapper() = default;
  virtual at::Tensor run(std::size_t index, std::size_t count, const BlockFunction& block,
                         const std::vector<at::Tensor>& inputs) = 0;
};

// A linear layer by its part: q_proj, k_proj, v_proj, output_proj, mlp, output.
struct NamedLinear {
  std::string part, path;
  nn::Linear* layer = nullptr;  // owned by the module
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
  // The model's own loss head: a scalar. Logits are released when this returns.
  virtual at::Tensor loss(const at::Tensor& hidden_states, const Batch& batch) = 0;
  // Of `loss`, and of a loss head in its stead.
  virtual LossReduction loss_reduction() const { return LossReduction::kMean; }
  virtual DefaultUpdateRule default_update_rule() const = 0;
  virtual std::vector<NamedLinear> linears() = 0;
  virtual std::size_t block_count() const = 0;
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
};

// What a plugin's factory is given. `tensor_options`: device and dtype of the parameters.
struct ModelContext {
  std::string id;
  Options options;
  at::TensorOptions tensor_options;
};

}  // namespace peakbench
