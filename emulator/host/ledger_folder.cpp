#include "host/ledger_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/shared_cards.h"
#include "errors/errors.h"

namespace peakbench::emulator {

namespace fs = std::filesystem;

LedgerFolder::LedgerFolder() {
  std::error_code error;
  const char* given = std::getenv("TMPDIR");
  const fs::path folder =
      given && !*given ? fs::path("/tmp") : fs::temp_directory_path(error);  // empty: not set
  std::string pattern = (folder / "peakbench-emulate.XXXXXX").string();
  if (error || !mkdtemp(pattern.data())) {
    throw ConfigError(fmt::format(
        "cannot make a folder for the program's figures in {}: {}; set TMPDIR to a folder that "
        "you may write to",
        given && *given ? given : folder.string(), error ? error.message() : std::strerror(errno)));
  }
  path_ = pattern;
  if (!make_shared_cards(path_ / kSharedCardsFile))
    throw ConfigError(fmt::format("cannot write to {}: {}; set TMPDIR to a folder with room",
                                  folder.string(), std::strerror(errno)));
}

LedgerFolder::~LedgerFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

}  // namespace peakbench::emulator
