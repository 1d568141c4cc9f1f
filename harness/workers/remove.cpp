#include "workers/remove.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "workers/choose.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

// By its name: what is in it may not be readable.
std::string version_of(const WorkerFolder& worker) {
  const auto name = worker.folder.filename().string();
  return name.substr(name.find('-') + 1);
}

}  // namespace

const WorkerFolder& to_be_removed(const std::vector<WorkerFolder>& all,
                                  const std::string& version) {
  std::vector<const WorkerFolder*> meant;
  const WorkerFolder* carried = nullptr;
  std::vector<std::string> versions;
  for (const auto& one : all) {
    const auto has = version_of(one);
    if (one.in_cache && has == version) return one;
    if (one.in_cache) versions.push_back(has);
    if (!manifest::is_start_of(version, has)) continue;
    if (one.in_cache)
      meant.push_back(&one);
    else
      carried = &one;
  }
  if (!meant.empty() && version.find('.') == std::string::npos)  // 2 would be any of them
    throw ConfigError(fmt::format("\"{}\" names no release of PyTorch; say which: {}", version,
                                  fmt::join(versions, ", ")));
  if (meant.size() == 1) return *meant.front();
  if (meant.size() > 1)
    throw ConfigError(fmt::format("{} workers are for {}: say which: {}", meant.size(), version,
                                  fmt::join(versions, ", ")));
  if (carried != nullptr)
    throw ConfigError(fmt::format("{} is a part of the installation, and stays with it",
                                  carried->folder.string()));
  throw ConfigError(fmt::format("no worker for {} was built here{}{}", version,
                                versions.empty() ? "" : "; there are ", fmt::join(versions, ", ")));
}

void remove_worker(const WorkerFolder& worker) {
  const auto cache = worker.folder.parent_path();
  const auto doomed = cache / (".removed-" + worker.folder.filename().string());
  std::error_code error;
  fs::remove_all(doomed, error);
  fs::rename(worker.folder, doomed, error);
  if (error) files::cannot_write(worker.folder.string(), error.value());
  fs::remove_all(doomed, error);
  if (error) files::cannot_write(doomed.string(), error.value());
  files::remove_file(worker.folder.string() + ".log");
}

}  // namespace peakbench::workers
