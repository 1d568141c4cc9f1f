#pragma once

#include <string>

#include "cli/program.h"
#include "cli/run_arguments.h"

namespace peakbench::cli {

// The path of the bundled suite with that name; it may not exist.
std::string bundled_suite(const Places& places, const std::string& name);

// The path that was typed. If there is no such file and it is a single word: the bundled suite of
// that name. Throws ConfigError with the names of the bundled suites.
std::string suite_file(const Places& places, const std::string& typed);

// Measures the cases and writes the results. An exit code. Throws ConfigError where nothing can be
// measured.
int run_cases(World& world, const RunArguments& arguments);

}  // namespace peakbench::cli
