// What `peakbench emulate --json FILE` wrote, as a run with one case, to be compared and gated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "result/run.h"
#include "trace/lines.h"

namespace peakbench::program {

struct EmulatedFile {
  result::Run run;
  // That hold most at the peak; empty where the file does not tell them, or they are not of the
  // process in `run`.
  std::vector<trace::LineShare> lines;
};

// The case is that of the program which `peakbench trace` would make; its memory is that of the
// process whose PyTorch had the most allocated, and has the peaks and, where the file tells what
// fills them, the categories at the peak: no bytes asked for, no phases or traces. Without
// PyTorch's own counts it has no memory.
//
// Nullopt: the file is something else, such as a run.json. Throws ConfigError with the path and the
// field where it is one that cannot be understood.
std::optional<EmulatedFile> read_emulated_json(const std::string& path);

}  // namespace peakbench::program
