// The words of a command line, read; what is wrong with them is a sentence that helps.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace peakbench::cli {

// Throws ConfigError: an unknown command or option with the one that was probably meant, a word
// that is missing with the line that was expected. Throws CLI::Success for --help and --version.
void parse_words(CLI::App& app, const std::vector<std::string>& words);

}  // namespace peakbench::cli
