#include "host/ledger_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "core/shared_cards.h"
#include "errors/errors.h"

namespace peakbench::emulator {

namespace fs = std::filesystem;

LedgerFolder::LedgerFolder() {
  std::error_code error;
  const char* given = std::getenv("TMPDIR");
  const fs::path folder =
      given && !*given ? fs::path("/tmp") : fs::temp_directory_path(error);  // empty: not set
  try {
    if (error) throw std::system_error(error);
    folder_.emplace(folder, "peakbench-emulate.");
  } catch (const std::system_error& problem) {
    throw ConfigError(fmt::format(
        "cannot make a folder for the program's figures in {}: {}; set TMPDIR to a folder that "
        "you may write to",
        given && *given ? given : folder.string(), problem.code().message()));
  }
  if (!make_shared_cards(path() / kSharedCardsFile))
    throw ConfigError(fmt::format("cannot write to {}: {}; set TMPDIR to a folder with room",
                                  folder.string(), std::strerror(errno)));
}

}  // namespace peakbench::emulator
