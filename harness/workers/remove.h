// Workers taken out of the user's cache.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/worker_folder.h"

namespace peakbench::workers {

// The one of the cache whose version starts so, or is that. Throws ConfigError: none, several, or
// one that is a part of the installation.
const WorkerFolder& to_be_removed(const std::vector<WorkerFolder>& all, const std::string& version);

// With its log. Whole or not at all, as far as others see. Throws HostError where it cannot be.
void remove_worker(const WorkerFolder& worker);

}  // namespace peakbench::workers
