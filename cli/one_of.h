// A word of a list.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace peakbench::cli {

// The word is one of these, or becomes the one that another name stands for. The message for any
// other word names the one that was probably meant, or all. Completion knows the words.
CLI::Validator one_of(const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& other_names = {});

}  // namespace peakbench::cli
