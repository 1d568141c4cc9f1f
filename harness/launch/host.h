// The machine a run is made on: what it is, and how much of it is free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "manifest/worker.h"

namespace peakbench::launch {

// Memory of this process's machine or container, whichever is smaller.
struct HostMemory {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
};
HostMemory host_memory();

// What a worker's tensors may take on the CPU: `asked`, or what is available less room for the
// worker itself (LibTorch, the trace) and the machine.
std::int64_t memory_budget(std::int64_t asked_bytes, const HostMemory& memory);

// Resident memory at which a worker is ended from outside, should its own accounting have missed
// something.
std::int64_t resident_limit(std::int64_t budget_bytes, const HostMemory& memory);

// Bytes free for us on the file system of a folder; -1 where that is not known.
std::int64_t free_disk_bytes(const std::string& folder);

// `environment` of run.json, as far as it is known without torch: os, kernel, cpu, logical_cores,
// cpu_governor (where the system has one), memory_bytes, libtorch, libtorch_git_version,
// libtorch_cuda, peakbench (version), commit. LibTorch's are those of the one that `worker` loads,
// and absent where its stamp names none.
nlohmann::json host_environment(const manifest::Worker& worker);
// Of that, what names the LibTorch that the worker loads; empty where none is known.
nlohmann::json libtorch_of(const manifest::Worker& worker);

const char* peakbench_version();
const char* peakbench_commit();  // as configured; "unknown" outside a git checkout

}  // namespace peakbench::launch
