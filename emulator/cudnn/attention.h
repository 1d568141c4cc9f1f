#pragma once

#include <cstdint>
#include <optional>

#include "cudnn/graph.h"

namespace peakbench::emulator::cudnn {

// The workspaces of cuDNN's engines for attention.

// Bytes of workspace that cuDNN's engine for this graph needs on the emulated card, in addition to
// those of cudnn-frontend itself. Measured on an H200, and equal to cuDNN's own figure without a
// device (docs/evidence/real_card.md).
//
// Only known for cuDNN 9.19.0, compute capability 9.0, and graphs that PyTorch builds for attention
// in 16 bits. These may have ragged or padded sequences, deterministic gradients, gradients of a
// bias, and paged caches. Empty for all others, and for a single query.
std::optional<std::int64_t> attention_workspace(const Descriptor& graph);

}  // namespace peakbench::emulator::cudnn
