#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "planning/worker.h"

namespace peakbench::launch {

// The machine a run is made on: what it is, and how much of it is free.

// Processors that this process may run on.
std::size_t usable_cores();

// Memory of this process's machine or container, whichever is smaller.
struct HostMemory {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;
};
HostMemory host_memory();

// Bytes that a worker's tensors may take on the CPU: `asked`, or the available memory less a
// reserve for the worker itself (LibTorch, the trace) and the machine.
std::int64_t memory_budget(std::int64_t asked_bytes, const HostMemory& memory);

// Resident memory at which a worker is ended from outside, should its own accounting have missed
// something.
std::int64_t resident_limit(std::int64_t budget_bytes, const HostMemory& memory);

// Free bytes on the file system of a folder; -1 if unknown.
std::int64_t free_disk_bytes(const std::string& folder);

// A port of this machine that is free at the moment, for processes to meet at. Throws HostError.
int free_port();

// `environment` of run.json, as far as it is known without torch: os, kernel, cpu, logical_cores,
// cpu_governor (if the system has one), memory_bytes, peakbench (version) and commit. Also
// libtorch, libtorch_git_version and libtorch_cuda: those that `worker` loads, absent if its stamp
// does not name them.
nlohmann::json host_environment(const planning::Worker& worker);
// Of that, what names the LibTorch that the worker loads; empty where none is known.
nlohmann::json libtorch_of(const planning::Worker& worker);

const char* peakbench_version();
const char* peakbench_commit();  // as configured; "unknown" outside a git checkout

// What else kept the machine busy while a worker ran: the processor's own books before and after,
// less what the worker took.

// Ticks that the processors of `cpus` have worked since the system started, from the text of
// /proc/stat. Everything but idle time and waiting for a disk is work, also what another virtual
// machine took (`steal`). Nullopt if the text lacks one of the processors.
std::optional<std::int64_t> busy_ticks(const std::string& proc_stat, const std::set<int>& cpus);

// Cores that others kept busy, on average over `wall_ns`; never below 0. `own_cpu_ns`: the worker's
// user and system time. Nullopt without books or time.
std::optional<double> other_busy_cores(std::optional<std::int64_t> before,
                                       std::optional<std::int64_t> after,
                                       std::int64_t ticks_per_second, std::int64_t own_cpu_ns,
                                       std::int64_t wall_ns);

// Watches from its making on, over the processors that this process may use.
class LoadWatch {
 public:
  LoadWatch();
  std::optional<double> other_busy_cores(std::int64_t own_cpu_ns, std::int64_t wall_ns) const;

 private:
  std::set<int> cpus_;
  std::optional<std::int64_t> before_;
};

}  // namespace peakbench::launch
