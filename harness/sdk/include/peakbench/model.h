// A model as a plugin offers it: built directly on a device in a dtype, with the operators and the
// parameter order of its reference implementation, so that it takes the same memory to the byte.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peakbench/batch.h"
#include "peakbench/blocks.h"
#include "peakbench/embedding.h"
#include "peakbench/nn.h"
#include "peakbench/options.h"

namespace peakbench {

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

  // The batch of the first step, and of all others where the batch stays. Made after the recipe's
  // transforms, before the first step; random numbers are seeded anew for it, so that it is the
  // same for every stack of a seed.
  virtual Batch make_batch(const BatchShape& shape) = 0;
  // For models that declare the fact `changes_batch`: the batch of step 1, 2, ..., made when the
  // step begins, in its forward. As many samples as make_batch's; lengths may differ. Random
  // numbers start anew from the run's seed and the step, so that every stack is given the same
  // batches.
  virtual std::optional<Batch> next_batch(std::int64_t step, const BatchShape& shape) {
    return std::nullopt;
  }
  // True: the batch before is released after the new one is made, as loops over a data loader do
  // it. False: before.
  virtual bool keeps_batch_until_next() const { return false; }

  // For models that declare the fact `embedding`: the embeddings of the input (B, T, C), before
  // anything that depends on their number (positions). hidden_states takes them from run_embed.
  virtual at::Tensor embed(const Batch& batch);
  // Up to the final hidden states: what a loss head takes. ViT: (B, C); decoders: (B, T, C).
  virtual at::Tensor hidden_states(const Batch& batch) = 0;
  // The model's own loss head: a scalar. Logits are released when this returns. `hidden_states` is
  // this function's own, to be released as early as the model's reference does.
  virtual at::Tensor loss(at::Tensor hidden_states, const Batch& batch) = 0;
  // What the model adds to the loss, whoever made that: a scalar, with the model's own weight in it
  // (a router's balance). Undefined: nothing. Asked once after each hidden_states, after the loss;
  // what hidden_states left for it is given up then. The sum is the loss of the micro-batch:
  // weighted as one, transformed as one, and reported.
  virtual at::Tensor auxiliary_loss(const Batch& batch) { return {}; }
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

  // Inside a block, also one that runs again in backward: a part of it, with what strategies put
  // around parts of this name. "attention": the hidden state of all positions. "mlp": each position
  // by itself, so that it may be run on some positions after the others. A part of a model's own
  // has a dot in its name. Public, so that a block's module can be given its model. Throws
  // std::logic_error outside of a block.
  at::Tensor run_part(const std::string& part, const TensorFunction& function,
                      const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run_part(const std::string& part, const BlockFunction& function,
                                   const std::vector<at::Tensor>& inputs);

  // Outermost first. Set by the worker from the recipe.
  void set_block_wrappers(const std::vector<std::shared_ptr<BlockWrapper>>& wrappers);
  void set_embedding_wrappers(std::vector<std::shared_ptr<EmbeddingWrapper>> wrappers);

 protected:
  // Models run each repeated block through this.
  at::Tensor run_block(std::size_t index, const TensorFunction& block,
                       const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run_block(std::size_t index, const BlockFunction& block,
                                    const std::vector<at::Tensor>& inputs);
  // Models call this in hidden_states: `embed`, with what strategies put around it.
  at::Tensor run_embed(const Batch& batch);

 private:
  class InBlock;
  using Wrappers = std::vector<std::shared_ptr<BlockWrapper>>;
  std::size_t current_block(const std::string& part) const;

  Wrappers block_wrappers_;
  std::map<std::string, Wrappers> part_wrappers_;  // by part
  std::vector<std::shared_ptr<EmbeddingWrapper>> embedding_wrappers_;
  std::size_t blocks_ = 0;
  std::optional<std::size_t> current_block_;
};

// What a plugin's factory is given. `tensor_options`: device and dtype of the parameters.
struct ModelContext {
  std::string id;
  Options options;
  at::TensorOptions tensor_options;
};

}  // namespace peakbench
