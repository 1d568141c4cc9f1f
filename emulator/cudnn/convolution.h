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

struct WorkspaceEstimate {
  std::uint64_t bytes = 0, most_bytes = 0;  // least: none
};

// What engines for tensor cores need: their inputs and results in the layout and with the multiples
// of channels that they work with, copied where the program has another. `most_bytes` has room for
// partial sums, too: docs/evidence/real_card.md has how often cuDNN's own answers were larger.
// Empty where they were compared with none: more than two dimensions of an image, float64.
std::optional<WorkspaceEstimate> estimate(const Convolution& convolution, ConvolutionPass pass);

}  // namespace peakbench::emulator::cudnn
