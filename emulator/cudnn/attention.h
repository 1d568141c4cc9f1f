// The workspaces of cuDNN's engines for attention.
#pragma once

#include <cstdint>
#include <optional>

#include "cudnn/descriptors.h"

namespace peakbench::emulator::cudnn {

// What the engine that cuDNN takes for this graph on the emulated card needs beside what
// cudnn-frontend adds itself, in bytes. Empty where that is not known: for any other graph than
// those that PyTorch has cudnn-frontend build for attention in 16 bits (ragged or padded sequences,
// deterministic gradients, gradients of a bias, paged caches among them), for a single query, for
// another compute capability than 9.0, for another release of cuDNN than 9.19.0. Measured on an
// H200, and equal to what cuDNN itself says without a device (docs/evidence/real_card.md).
std::optional<std::int64_t> attention_workspace(const Descriptor& graph);

}  // namespace peakbench::emulator::cudnn
