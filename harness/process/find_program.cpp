#include "process/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace peakbench::process {

namespace fs = std::filesystem;

std::optional<fs::path> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return access(word.c_str(), F_OK) == 0 ? std::optional<fs::path>(word) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, ignored))
      return candidate;
  }
  return std::nullopt;
}

}  // namespace peakbench::process
