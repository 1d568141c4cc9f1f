// `peakbench doctor --context`: the memory of a real GPU's CUDA context.
#pragma once

#include <string>

#include "cli/program.h"

namespace peakbench::cli {

struct ContextArguments {
  int device = 0;  // as PyTorch counts GPUs
  std::string to;  // a card file to add the figures to; empty: none
  bool json = false;
};

// Runs `python3 -m peakbench.context` and prints its result. Throws ConfigError if there is no
// Python, or it fails without a sentence of ours.
int measure_context(World& world, const ContextArguments& arguments);

}  // namespace peakbench::cli
