// The tables `programs` of a suite.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planning/programs.h"
#include "planning/suite_table.h"

namespace peakbench::planning {

// `suite_file`: folders are found from it, wherever the suite is run from. `places` gets the
// devices' ("programs/NAME/devices/TEXT"). Throws ConfigError with file, line and column.
std::vector<Program> read_programs(const SuiteTable& suite, const std::string& suite_file,
                                   std::map<std::string, std::string>& places);

}  // namespace peakbench::planning
