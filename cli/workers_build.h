// `peakbench workers build`.
#pragma once

#include <string>

#include "cli/program.h"

namespace peakbench::cli {

struct WorkersBuild {
  std::string torch_folder;  // empty: the environment's
};

// An exit code.
int build_worker(World& world, const WorkersBuild& arguments);

}  // namespace peakbench::cli
