// The workspaces of cuDNN's engines for attention.
#pragma once

#include <cstdint>
#include <optional>

#include "cudnn/descriptors.h"

namespace peakbench::emulator::cudnn {

// What the engine that cuDNN takes for this graph on the emulated card needs beside what
// cudnn-frontend adds itself, in bytes. Empty where that is not known: for another operation than
// attention in 16 bits on sequences of one length, for another compute capability than 9.0, for
// another release of cuDNN. Measured on an H200 (docs/real_card.md), and equal to what cuDNN itself
// says without a device.
std::optional<std::int64_t> attention_workspace(const Descriptor& graph);

}  // namespace peakbench::emulator::cudnn
