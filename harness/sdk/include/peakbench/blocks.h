// Block wrappers let a strategy run a model's repeated blocks, or parts of them, in its own way.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "peakbench/memory.h"

namespace peakbench {

// Runs a block, or a part of a block, as the model does. A wrapper may keep the function and call
// it again later, in backward.
// - `inputs[0]` is the hidden state, (B, T, C). Further inputs are other values that change from
//   block to block, such as a second stream or a router's sum.
// - `outputs[0]` is the next hidden state. Further outputs are other values that the model takes
//   from each block.
using BlockFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;
// A block function whose only output is the hidden state.
using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

// Runs blocks, or parts of blocks, in place of the model. Wrappers recompute, offload, shard or
// tile them. A wrapper returns as many tensors as the function would, and each of them is defined.
// A wrapper keeps no state between steps, or resets its state at block 0.
class BlockWrapper : public HoldsMemory {
 public:
  // Runs block `index` of `count`, counted from 0. `block` runs the block itself.
  virtual std::vector<at::Tensor> run(std::size_t index, std::size_t count,
                                      const BlockFunction& block,
                                      const std::vector<at::Tensor>& inputs) = 0;

  // Names the parts that the wrapper surrounds in every block: "attention", "mlp", or a model's own
  // names. If the list is empty, the wrapper surrounds the blocks themselves. The worker calls this
  // once, before the first step.
  virtual std::vector<std::string> parts() const { return {}; }
  // Runs one of the parts named by parts(), in block `index` of `count`. The default treats the
  // part as a block and calls `run`.
  virtual std::vector<at::Tensor> run_part(const std::string& part, std::size_t index,
                                           std::size_t count, const BlockFunction& function,
                                           const std::vector<at::Tensor>& inputs) {
    return run(index, count, function, inputs);
  }
};

}  // namespace peakbench
