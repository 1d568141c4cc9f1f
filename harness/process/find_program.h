// The search on PATH.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace peakbench::process {

// The file that a command's first word starts: itself when it holds a slash, else the first of that
// name on PATH.
std::optional<std::filesystem::path> find_program(const std::string& word);

}  // namespace peakbench::process
