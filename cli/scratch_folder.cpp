#include "cli/scratch_folder.h"

#include <fmt/format.h>

#include <system_error>

#include "errors/errors.h"

namespace peakbench::cli {

ScratchFolder::ScratchFolder(const std::string& beside) {
  try {
    folder_.emplace(beside, ".trials.");
  } catch (const std::system_error& error) {
    throw ConfigError(fmt::format("{}: cannot be written: {}", beside, error.code().message()));
  }
}

}  // namespace peakbench::cli
