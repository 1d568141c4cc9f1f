// What `peakbench emulate --json FILE` wrote, as a run with one case, to be compared and gated.
#pragma once

#include <optional>
#include <string>

#include "result/run.h"

namespace peakbench::program {

// The case is that of the program which `peakbench trace` would make; its memory is that of the
// process whose PyTorch had the most allocated, and has the peaks alone: no bytes asked for, no
// phases, categories or traces. Without PyTorch's own counts it has no memory.
//
// Nullopt: the file is something else, such as a run.json. Throws ConfigError with the path and the
// field where it is one that cannot be understood.
std::optional<result::Run> read_emulated_json(const std::string& path);

}  // namespace peakbench::program
