// A run, for whoever has its arguments.
#pragma once

#include <string>
#include <vector>

#include "cli/program.h"
#include "cli/run_arguments.h"

namespace peakbench::cli {

// Measures the cases and writes the results; `typed`: argv, for the record. An exit code. Throws
// ConfigError where nothing can be measured.
int run_cases(World& world, const RunArguments& arguments, const std::vector<std::string>& typed);

}  // namespace peakbench::cli
