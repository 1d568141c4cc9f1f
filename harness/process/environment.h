// The variables of a program that we start.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace peakbench::process {

// Variables to set, replacing equal names.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Our own, with those added: NAME=VALUE. `without`: how names of ours begin that are left out.
std::vector<std::string> merged_environment(const Environment& added,
                                            const std::vector<std::string>& without = {});

// A list as execve takes it: to the texts, which must outlive it, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts);

}  // namespace peakbench::process
