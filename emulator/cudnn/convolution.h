// Workspaces of cuDNN's engines for convolutions: measured on a card, or estimated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/convolutions.h"
#include "cudnn/graph.h"

namespace peakbench::emulator::cudnn {

struct ConvolutionCall {
  Convolution convolution;  // without `tf32`
  ConvolutionPass pass{};
};

// The one convolution of a graph, as PyTorch builds it; empty for all other graphs.
std::optional<ConvolutionCall> convolution_of(const Descriptor& graph);

// Whether a variable of the environment makes PyTorch or cuDNN choose engines in another way than
// what was measured and compared.
bool chooses_otherwise();

struct WorkspaceEstimate {
  std::uint64_t bytes = 0, most_bytes = 0;  // least: none
};

// What engines for tensor cores need: their inputs and results in the layout and with the multiples
// of channels that they work with, copied where the program has another. `most_bytes` has room for
// partial sums, too: docs/evidence/real_card.md has how often cuDNN's own answers were larger.
// Empty where they were compared with none: more than two dimensions of an image, float64.
// `by_tensor_cores`: whether a card with this compute capability computes it so.
bool by_tensor_cores(const Convolution& convolution, int major);
std::optional<WorkspaceEstimate> estimate(const Convolution& convolution, ConvolutionPass pass,
                                          bool by_tensor_cores);

}  // namespace peakbench::emulator::cudnn
