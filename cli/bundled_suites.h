// The suites that are part of the installation.
#pragma once

#include <string>

#include "cli/program.h"

namespace peakbench::cli {

// Where the one of that name lies; it need not be there.
std::string bundled_suite(const Places& places, const std::string& name);

// The file that somebody means: what was typed, or where that names no file and is a word, the
// bundled suite of that name. Throws ConfigError with their names where there is none.
std::string suite_file(const Places& places, const std::string& typed);

}  // namespace peakbench::cli
