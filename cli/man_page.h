// The manual page, from the texts of `--help`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace peakbench::cli {

// In the language of man(7), of all commands; the same each time. `version`: "0.1.0".
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace peakbench::cli
