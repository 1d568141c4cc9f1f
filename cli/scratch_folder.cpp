#include "cli/scratch_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "errors/errors.h"

namespace peakbench::cli {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder(const std::string& beside) {
  std::string pattern = (fs::absolute(beside) / ".trials.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw ConfigError(fmt::format("{}: cannot be written: {}", beside, std::strerror(errno)));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace peakbench::cli
