#include "ab/folder.h"

#include <fmt/format.h>

#include <filesystem>

#include "errors/errors.h"
#include "files/file.h"
#include "files/own_file.h"
#include "launch/run_folder.h"
#include "result/ab.h"

namespace peakbench::ab {

void make_folder(const std::string& folder) {
  files::refuse_strangers(folder, {result::kAbFile});
  const std::filesystem::path root = folder;
  const bool ours = files::is_there((root / result::kAbFile).string());
  for (const char* side : {kBaseFolder, kNewFolder})
    if (const auto path = (root / side).string(); !ours && !files::holds_nothing(path))
      throw ConfigError(
          fmt::format("{} is there, and {} holds no {} that it could belong to. Nothing was "
                      "touched; move it, or choose another folder with --out.",
                      path, folder, result::kAbFile));
  launch::RunFolder{folder};
}

}  // namespace peakbench::ab
