#include "launch/worker_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "host/compiled_library.h"
#include "launch/worker_choice.h"

namespace peakbench::launch {
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
  if (found.stamp.sdk_revision != planning::kSdkRevision)
    throw ConfigError(fmt::format("it has SDK revision {}, and this Peakbench {}; build it anew",
                                  found.stamp.sdk_revision, planning::kSdkRevision));
}

void check_parts(const fs::path& folder) {
  for (const char* part :
       {"bin/peakbench-worker", "lib/libpeakbench_sdk.so", "lib/peakbench/plugins"})
    if (!files::is_there((folder / part).string()))
      throw ConfigError(fmt::format("it is incomplete: {} is missing", part));
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

// Empty where there is no place for one.
fs::path workers_cache() {
  try {
    return pytorch::cache_folder(kCacheKind);
  } catch (const ConfigError&) {
    return {};
  }
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

std::vector<WorkerFolder> list_workers(const fs::path& carried, const std::string& peakbench) {
  auto all = workers_in(carried, peakbench, false);
  if (const auto cache = workers_cache(); !cache.empty())
    for (auto& one : workers_in(cache, peakbench, true)) all.push_back(std::move(one));
  return all;
}

namespace {

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
    if (!planning::is_start_of(version, has)) continue;
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

}  // namespace peakbench::launch
