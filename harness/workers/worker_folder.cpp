#include "workers/worker_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "errors/errors.h"
#include "files/file.h"
#include "json/fields.h"
#include "pytorch/library_cache.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "peakbench-worker/1";
constexpr const char* kBegins = "torch-";

void read_facts(WorkerFolder& found, const std::string& peakbench) {
  const auto json = files::read_json_file((found.folder / kWorkerFile).string());
  const Fields fields(json);
  if (const auto schema = fields.get<std::string>("schema"); schema != kSchema)
    throw ConfigError(
        fmt::format("its {} is of the form {}, not {}", kWorkerFile, schema, kSchema));
  const auto version = fields.get<std::string>("peakbench");
  found.stamp = {.sdk_revision = static_cast<int>(fields.get<std::int64_t>("sdk_revision")),
                 .libtorch_version = fields.get<std::string>("libtorch_version"),
                 .libtorch_git_version = fields.get<std::string>("libtorch_git_version"),
                 .libtorch_cuda = fields.get_or<std::string>("libtorch_cuda", ""),
                 .cxx_abi = fields.get<std::string>("cxx_abi")};
  found.torch = fields.get_or<std::string>("torch", "");
  if (version != peakbench)
    throw ConfigError(fmt::format("it belongs to Peakbench {}, and this is {}; build it anew",
                                  version, peakbench));
  if (found.stamp.sdk_revision != manifest::kSdkRevision)
    throw ConfigError(fmt::format("it has SDK revision {}, and this Peakbench {}; build it anew",
                                  found.stamp.sdk_revision, manifest::kSdkRevision));
}

void check_parts(const fs::path& folder) {
  for (const char* part :
       {"bin/peakbench-worker", "lib/libpeakbench_sdk.so", "lib/peakbench/plugins"})
    if (!files::is_there((folder / part).string()))
      throw ConfigError(fmt::format("it is not whole: {} is missing", part));
  if (access((folder / "bin/peakbench-worker").c_str(), X_OK) != 0)
    throw ConfigError(
        fmt::format("bin/peakbench-worker cannot be started: {}", std::strerror(errno)));
}

void check_owner(const fs::path& path) {
  if (const auto why = pytorch::why_not_trusted(path); !why.empty())
    throw ConfigError(fmt::format("{} {}", path.string(), why));
}

// What is loaded from the cache is the user's own, all of it.
void check_owners(const fs::path& folder) {
  check_owner(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) check_owner(entry.path());
}

WorkerFolder read_checked(const fs::path& folder, const std::string& peakbench, bool in_cache) {
  WorkerFolder found;
  found.folder = folder;
  found.in_cache = in_cache;
  try {
    if (in_cache) check_owner(folder.parent_path());
    if (in_cache) check_owners(folder);
    read_facts(found, peakbench);
    check_parts(folder);
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

std::vector<WorkerFolder> workers_in(const fs::path& folder, const std::string& peakbench,
                                     bool in_cache) {
  std::vector<WorkerFolder> found;
  std::error_code none;
  for (auto entry = fs::directory_iterator(folder, none);
       !none && entry != fs::directory_iterator(); entry.increment(none))
    if (entry->path().filename().string().starts_with(kBegins) &&
        files::is_folder(entry->path().string()))
      found.push_back(read_checked(entry->path(), peakbench, in_cache));
  std::ranges::sort(found, {}, &WorkerFolder::folder);
  return found;
}

}  // namespace

bool is_worker_folder(const fs::path& folder) {
  return files::is_there((folder / kWorkerFile).string());
}

WorkerFolder read_worker_folder(const fs::path& folder, const std::string& peakbench) {
  return read_checked(folder, peakbench, false);
}

WorkerFolder read_cached_worker(const fs::path& folder, const std::string& peakbench) {
  return read_checked(folder, peakbench, true);
}

fs::path workers_cache() {
  try {
    return pytorch::cache_folder(kCacheKind);
  } catch (const ConfigError&) {
    return {};
  }
}

std::vector<WorkerFolder> list_workers(const fs::path& carried, const std::string& peakbench) {
  auto all = workers_in(carried, peakbench, false);
  if (const auto cache = workers_cache(); !cache.empty())
    for (auto& one : workers_in(cache, peakbench, true)) all.push_back(std::move(one));
  return all;
}

}  // namespace peakbench::workers
