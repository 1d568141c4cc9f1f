#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace peakbench::values {

// What on the CPU gives what an operator gives that only CUDA has.

struct Equivalent {
  std::string_view name;  // of the operator
  // Takes the arguments off the stack and puts the results there, in their order; those that are
  // missing at the end (reserve spaces, random states) nobody knows. Throws where the CPU refuses.
  void (*call)(std::vector<c10::IValue>& stack);
  // Arguments that it does without, a bit each: what the forward pass left for the card's kernel
  // alone, of which nobody knows the value. They are None.
  std::uint32_t unused = 0;

  bool uses(int argument) const { return (unused >> argument & 1U) == 0; }
};

// Null where there is none.
const Equivalent* equivalent_of(std::string_view name);

// The kernels of equivalents.h, by what they compute: each takes its operator's arguments off the
// stack (native_functions.yaml has their order) and puts the results there.

using Stack = std::vector<c10::IValue>;

inline std::optional<at::Tensor> optional_tensor(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
  return value.toTensor();
}

// cuDNN's convolutions, of which none has a bias but the fused ones.
void convolution(Stack& stack);
void transposed_convolution(Stack& stack);
void convolution_relu(Stack& stack);
void convolution_add_relu(Stack& stack);

// cuDNN's batch normalisation.
void batch_norm(Stack& stack);
void batch_norm_backward(Stack& stack);
// The parts that torch.nn.SyncBatchNorm is made of.
void batch_norm_stats(Stack& stack);
void batch_norm_gather_stats(Stack& stack);
void batch_norm_elements(Stack& stack);
void batch_norm_backward_sums(Stack& stack);
void batch_norm_backward_elements(Stack& stack);

// Of a backward pass that dropped something, the CPU cannot know what: those throw.
void flash_attention(Stack& stack);
void flash_attention_backward(Stack& stack);
void efficient_attention(Stack& stack);
void efficient_attention_backward(Stack& stack);
void cudnn_attention(Stack& stack);
void cudnn_attention_backward(Stack& stack);
void recurrent(Stack& stack);
void recurrent_backward(Stack& stack);

}  // namespace peakbench::values
