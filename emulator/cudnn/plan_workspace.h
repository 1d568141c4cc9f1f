#pragma once

#include <cstdint>
#include <string>

#include "cudnn/convolution.h"
#include "cudnn/graph.h"

namespace peakbench::emulator::cudnn {

// What is known of a plan's workspace.
struct PlanWorkspace {
  enum class Standing { unknown, known, measured, measured_elsewhere, estimated };
  Standing standing = Standing::unknown;
  std::uint64_t bytes = 0, least_bytes = 0, most_bytes = 0;
  std::string source;  // of what was measured: where and when
};

// Of attention: by a rule. Of a convolution: of the card's file, else of the file of a card of its
// compute capability, else an estimate. Unknown if cuDNN chooses by timing
// (torch.backends.cudnn.benchmark) or among deterministic engines, or if nobody knows how it
// chooses.
PlanWorkspace plan_workspace(const Descriptor& graph);

}  // namespace peakbench::emulator::cudnn
