// The interface of a model that a plugin provides. A model is built directly on a device in a
// dtype. It has the operators and the parameter order of its reference implementation, and
// therefore takes the same memory to the byte.
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

// A linear layer and the part of the model that it belongs to. The parts are q_proj, k_proj,
// v_proj, qkv_proj (these three in one layer), output_proj, mlp and output.
struct NamedLinear {
  std::string part, path;
  nn::LinearLayer* layer = nullptr;  // owned by the module
};

// Describes the linear layer that makes the logits, and how the model's loss uses them. Loss heads
// that never hold all logits at once need it.
struct OutputHead {
  at::Tensor weight, bias;           // (V, C), (V); bias may be undefined
  nn::LinearLayer* layer = nullptr;  // null if the weight is the embedding's (tied)
  // True: position t is compared with label t + 1, and the last position with no label.
  bool shifts_labels = true;
  std::int64_t ignore_index = -100;        // the label of positions that the loss ignores
  at::ScalarType loss_dtype = at::kFloat;  // the loss converts logits to this dtype

  // Returns the logits: (..., C) -> (..., V). If the layer has an adapter, the adapter is applied.
  at::Tensor logits(const at::Tensor& hidden_states) const;
  // Returns the label that each position is compared with: (B, T) int64 -> (B, T).
  at::Tensor targets(const at::Tensor& labels) const;
  // Returns why `weight` alone does not give the logits, such as "the output head has an adapter".
  // The text is empty if it does.
  std::string why_not_plain() const;
};

enum class DefaultUpdateRule { kAdam, kAdamW };

// How the losses of the samples are reduced to the loss of a batch. The reduction determines the
// weight of a micro-batch's loss.
enum class LossReduction { kMean, kSum };

class Model {
 public:
  virtual ~Model() = default;

  virtual torch::nn::Module& module() = 0;

  // Returns the batch of the first step. Models that do not declare `changes_batch` train on it in
  // all steps. The worker calls this after the recipe's transforms and before the first step. It
  // seeds the random numbers anew first, so that every stack of a seed receives the same batch.
  virtual Batch make_batch(const BatchShape& shape) = 0;
  // Returns the batch of step 1, 2, ..., where step 0 is the first. Models override it if they
  // declare the fact `changes_batch`; other models return nullopt.
  // - The worker calls it when the step begins. The call belongs to the phase forward.
  // - The batch has as many samples as the batch of make_batch. Lengths may differ.
  // - Random numbers are seeded anew from the run's seed and the step, so that every stack receives
  //   the same batches.
  virtual std::optional<Batch> next_batch(std::int64_t step, const BatchShape& shape) {
    return std::nullopt;
  }
  // True: the previous batch is released after the new one is made, as in loops over a data loader.
  // False: it is released before the new one is made.
  virtual bool keeps_batch_until_next() const { return false; }

  // Returns the embeddings of the input, (B, T, C), before anything that depends on their number,
  // such as positions. Models override it if they declare the fact `embedding`; their hidden_states
  // takes the embeddings from run_embed. The default throws std::logic_error.
  virtual at::Tensor embed(const Batch& batch);
  // Returns the final hidden states, which a loss head takes. ViT: (B, C); decoders: (B, T, C).
  virtual at::Tensor hidden_states(const Batch& batch) = 0;
  // Returns the loss of the model's own loss head, a scalar. Logits are released when the function
  // returns. The function owns `hidden_states`, and releases them as early as the model's reference
  // does.
  virtual at::Tensor loss(at::Tensor hidden_states, const Batch& batch) = 0;
  // Returns a term that is added to the loss, such as the balance of a router. It is a scalar that
  // includes the model's own weight, or undefined if there is nothing to add.
  // - The worker adds it to the result of `loss`, or of the recipe's loss head. It does not add it
  //   to the result of PassOptions::loss_head.
  // - The worker calls it once after each hidden_states, after the loss is made. The model then
  //   releases the data that hidden_states left for it.
  // - The sum is the loss of the micro-batch. It is weighted, transformed and reported as one.
  virtual at::Tensor auxiliary_loss(const Batch& batch) { return {}; }
  // Returns the reduction of `loss`. It applies to a loss head in its place, too.
  virtual LossReduction loss_reduction() const { return LossReduction::kMean; }
  virtual DefaultUpdateRule default_update_rule() const = 0;
  virtual std::vector<NamedLinear> linears() = 0;
  // Returns the paths of the repeated blocks in the module tree, in the order in which they run:
  // "model.layers.0", ... Each path must exist and occur once.
  virtual std::vector<std::string> block_paths() const = 0;
  // Returns nullopt if the loss is not the cross entropy of one linear layer's logits.
  virtual std::optional<OutputHead> output_head() { return std::nullopt; }
  // Returns why linears() lacks a part, such as "its attention weights are packed". Messages show
  // the text. It is empty if the reason is unknown.
  virtual std::string why_no_linear(const std::string& part) const { return {}; }

  // Runs a part of a block, with the wrappers that strategies have put around parts of this name.
  // Call it inside a block, also when the block runs again in backward. Throws std::logic_error
  // outside of a block.
  // - "attention" takes the hidden state of all positions.
  // - "mlp" treats each position by itself, so a wrapper may run it on some positions after others.
  // - A model's own part has a dot in its name.
  //
  // The function is public so that the module of a block can call it on its model.
  at::Tensor run_part(const std::string& part, const TensorFunction& function,
                      const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run_part(const std::string& part, const BlockFunction& function,
                                   const std::vector<at::Tensor>& inputs);

  // The worker sets the wrappers from the recipe, outermost first.
  void set_block_wrappers(const std::vector<std::shared_ptr<BlockWrapper>>& wrappers);
  void set_embedding_wrappers(std::vector<std::shared_ptr<EmbeddingWrapper>> wrappers);

 protected:
  // Models run each repeated block through this function, with its index counted from 0. Throws
  // std::logic_error if block_paths() does not name the block.
  at::Tensor run_block(std::size_t index, const TensorFunction& block,
                       const std::vector<at::Tensor>& inputs);
  std::vector<at::Tensor> run_block(std::size_t index, const BlockFunction& block,
                                    const std::vector<at::Tensor>& inputs);
  // Runs `embed` with the wrappers that strategies have put around it. Models call it in
  // hidden_states.
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

// The argument of a plugin's factory for models. `tensor_options` has the device and the dtype of
// the parameters.
struct ModelContext {
  std::string id;
  Options options;
  at::TensorOptions tensor_options;
};

}  // namespace peakbench
