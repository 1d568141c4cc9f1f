// The repeated blocks of a model and the parts of them, and what a strategy puts around either.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "peakbench/memory.h"

namespace peakbench {

// A block, or a part of one, as the model runs it. `inputs[0]` is the hidden state (B, T, C);
// further inputs are what else changes from block to block (a second stream, a router's sum).
// `outputs[0]` is the next hidden state; further outputs are what else the model takes from each
// block. A wrapper may keep the function and call it again later, in backward.
using BlockFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;
// One whose only output is the hidden state.
using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

// Runs blocks in a model's stead, or parts of them: recomputes, offloads, shards, tiles. Returns
// what the function would: as many tensors, each defined. Stateless between steps, or resets itself
// at block 0.
class BlockWrapper : public HoldsMemory {
 public:
  // Block `index` of `count`.
  virtual std::vector<at::Tensor> run(std::size_t index, std::size_t count,
                                      const BlockFunction& block,
                                      const std::vector<at::Tensor>& inputs) = 0;

  // The parts that it is put around, in every block ("attention", "mlp", names of a model's own);
  // none: the blocks themselves. Asked once, before the first step.
  virtual std::vector<std::string> parts() const { return {}; }
  // A part of block `index`, of those in parts(): as a block, where nothing else is said.
  virtual std::vector<at::Tensor> run_part(const std::string& part, std::size_t index,
                                           std::size_t count, const BlockFunction& function,
                                           const std::vector<at::Tensor>& inputs) {
    return run(index, count, function, inputs);
  }
};

}  // namespace peakbench
