#include "launch/host.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "launch/version.h"

namespace peakbench::launch {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kWorkerOwn =
    1024 * kMiB;  // LibTorch's code and tables, a trace of millions of events
constexpr std::int64_t kMachineOwn = 256 * kMiB;

// The value after the first line of a file that starts with `key` and a separator.
std::string value_in(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto at = line.find(separator);
    if (at == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t\"", at + 1);
    const auto end = line.find_last_not_of(" \t\"\n");
    return start == std::string::npos ? "" : line.substr(start, end - start + 1);
  }
  return "";
}

std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;  // "max" is none
}

// Our control group's folder below `root`, from the line of /proc/self/cgroup that holds `mark`.
// Inside a container the group's own name means nothing and the root is ours. Empty: no such
// controller.
std::string group_folder(const std::string& mark, const std::string& root,
                         const std::string& usage) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(mark);
    if (at == std::string::npos) continue;
    const auto own = root + line.substr(at + mark.size());
    return number_in(own + "/" + usage) ? own : root;
  }
  return "";
}

std::string control_group() { return group_folder("0::", "/sys/fs/cgroup", "memory.current"); }

std::string old_control_group() {  // version 1
  return group_folder(":memory:", "/sys/fs/cgroup/memory", "memory.usage_in_bytes");
}

void apply_limit(HostMemory& memory, std::optional<std::int64_t> limit,
                 std::optional<std::int64_t> used, std::int64_t reclaimable) {
  if (!limit || *limit <= 0 || *limit >= memory.total_bytes) return;
  memory.total_bytes = *limit;
  const auto left = *limit - used.value_or(0) + reclaimable;
  memory.available_bytes = std::clamp<std::int64_t>(left, 0, memory.available_bytes);
}

std::int64_t kilobytes(const std::string& key) {
  const auto text = value_in("/proc/meminfo", key, ':');
  return text.empty() ? 0 : std::stoll(text) * 1024;
}

// Files that the group has cached can be dropped: not in use.
std::int64_t reclaimable_in(const std::string& stat) {
  const auto text = value_in(stat, "inactive_file", ' ');
  return text.empty() ? 0 : std::stoll(text);
}

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

HostMemory host_memory() {
  HostMemory memory{kilobytes("MemTotal"), kilobytes("MemAvailable")};
  if (const auto group = control_group(); !group.empty())
    apply_limit(memory, number_in(group + "/memory.max"), number_in(group + "/memory.current"),
                reclaimable_in(group + "/memory.stat"));
  if (const auto group = old_control_group(); !group.empty())
    apply_limit(memory, number_in(group + "/memory.limit_in_bytes"),
                number_in(group + "/memory.usage_in_bytes"),
                reclaimable_in(group + "/memory.stat"));
  return memory;
}

std::int64_t memory_budget(std::int64_t asked_bytes, const HostMemory& memory) {
  if (asked_bytes > 0) return asked_bytes;
  const auto margin = std::min(kWorkerOwn + kMachineOwn, memory.available_bytes / 2);
  return std::max<std::int64_t>(memory.available_bytes - margin, kMiB);
}

std::int64_t resident_limit(std::int64_t budget_bytes, const HostMemory& memory) {
  const auto machine = std::max<std::int64_t>(memory.available_bytes - kMachineOwn, kMachineOwn);
  return std::min(budget_bytes + kWorkerOwn, machine);
}

std::int64_t free_disk_bytes(const std::string& folder) {
  struct statvfs stat {};
  if (statvfs(folder.c_str(), &stat) != 0) return -1;
  return static_cast<std::int64_t>(stat.f_bavail) * static_cast<std::int64_t>(stat.f_frsize);
}

nlohmann::json host_environment(const manifest::Worker& worker) {
  utsname name{};
  uname(&name);
  nlohmann::json environment;
  environment["os"] = value_in("/etc/os-release", "PRETTY_NAME", '=');
  environment["kernel"] = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  environment["cpu"] = value_in("/proc/cpuinfo", "model name", ':');
  environment["logical_cores"] = usable_cores();
  // What decides how fast the processor runs; virtual machines often have none.
  if (std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); file) {
    std::string governor;
    if (file >> governor) environment["cpu_governor"] = governor;
  }
  environment["memory_bytes"] = host_memory().total_bytes;
  environment.update(libtorch_of(worker));
  environment["peakbench"] = peakbench_version();
  environment["commit"] = peakbench_commit();
  return environment;
}

// Without a worker, programs say with which one they ran.
nlohmann::json libtorch_of(const manifest::Worker& worker) {
  if (manifest::libtorch_version(worker).empty()) return nlohmann::json::object();
  return {{"libtorch", manifest::libtorch_version(worker)},
          {"libtorch_git_version", worker.stamp.libtorch_git_version},
          {"libtorch_cuda", manifest::libtorch_cuda(worker)}};
}

const char* peakbench_version() { return kVersion; }
const char* peakbench_commit() { return kCommit; }

}  // namespace peakbench::launch
