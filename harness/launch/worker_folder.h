#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "planning/manifest.h"

namespace peakbench::launch {

// The folders of workers, one for each build of PyTorch: their worker.json, and why a worker cannot
// be used.

inline constexpr const char* kWorkerFile = "worker.json";
inline constexpr const char* kCacheKind = "workers";  // host/compiled_library.h

struct WorkerFolder {
  std::filesystem::path folder;  // .../torch-2.11.0+cu130
  planning::Stamp stamp;
  std::filesystem::path torch;  // that it was built with; empty: unknown
  bool in_cache = false;        // made by `peakbench workers build`
  std::string problem;          // why it is never chosen; empty: it can be
};

bool is_worker_folder(const std::filesystem::path& folder);

// Of any folder that has a worker.json. `peakbench`: the version that it must be of. What is wrong
// with it is its `problem`.
WorkerFolder read_worker_folder(const std::filesystem::path& folder, const std::string& peakbench);

// The same of one in the user's cache: all of it must be the user's own, and no other's to write.
WorkerFolder read_cached_worker(const std::filesystem::path& folder, const std::string& peakbench);

// Sorted by name: those bundled with the installation (`carried`, a folder that may be missing),
// then those in the user's cache.
std::vector<WorkerFolder> list_workers(const std::filesystem::path& carried,
                                       const std::string& peakbench);

// Workers taken out of the user's cache.

// The one of the cache whose version starts so, or is that. Throws ConfigError: none, several, or
// one that is a part of the installation.
const WorkerFolder& to_be_removed(const std::vector<WorkerFolder>& all, const std::string& version);

// Removes it with its log, atomically for other processes. Throws HostError on failure.
void remove_worker(const WorkerFolder& worker);

}  // namespace peakbench::launch
