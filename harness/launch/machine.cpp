#include "launch/machine.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/errors.h"
#include "base/file.h"
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

struct Controller {
  const char *mark, *root, *used, *limit;
};
constexpr std::array kControllers{
    Controller{"0::", "/sys/fs/cgroup", "memory.current", "memory.max"},
    Controller{":memory:", "/sys/fs/cgroup/memory", "memory.usage_in_bytes",
               "memory.limit_in_bytes"}};  // version 1

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

std::set<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::set<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.insert(static_cast<int>(cpu));
  return cpus;
}

}  // namespace

std::size_t usable_cores() {
  const auto cpus = usable_cpus().size();
  return cpus > 0 ? cpus : std::max(1U, std::thread::hardware_concurrency());
}

HostMemory host_memory() {
  HostMemory memory{kilobytes("MemTotal"), kilobytes("MemAvailable")};
  for (const auto& [mark, root, used, limit] : kControllers)
    if (const auto group = group_folder(mark, root, used); !group.empty())
      apply_limit(memory, number_in(group + "/" + limit), number_in(group + "/" + used),
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

int free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool found =
      file >= 0 && bind(file, name, size) == 0 && getsockname(file, name, &size) == 0;
  const int problem = errno;
  if (file >= 0) close(file);
  if (!found)
    throw HostError(
        fmt::format("no port for the processes to meet at: {}", host_error_text(problem)));
  return ntohs(address.sin_port);
}

nlohmann::json host_environment(const planning::Worker& worker) {
  utsname name{};
  uname(&name);
  nlohmann::json environment;
  environment["os"] = value_in("/etc/os-release", "PRETTY_NAME", '=');
  environment["kernel"] = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  environment["cpu"] = value_in("/proc/cpuinfo", "model name", ':');
  environment["logical_cores"] = static_cast<std::int64_t>(usable_cpus().size());
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
nlohmann::json libtorch_of(const planning::Worker& worker) {
  if (planning::libtorch_version(worker).empty()) return nlohmann::json::object();
  return {{"libtorch", planning::libtorch_version(worker)},
          {"libtorch_git_version", worker.stamp.libtorch_git_version},
          {"libtorch_cuda", planning::libtorch_cuda(worker)}};
}

const char* peakbench_version() { return kVersion; }
const char* peakbench_commit() { return kCommit; }

namespace {

constexpr double kSecond = 1e9;

std::string proc_stat() { return files::text_of("/proc/stat"); }

// The number of a line's first word, "cpu12"; "cpu" alone is the sum of all.
std::optional<int> cpu_of(const std::string& word) {
  int cpu = 0;
  if (word.rfind("cpu", 0) != 0) return std::nullopt;
  const auto* end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + 3, end, cpu);
  return read.ec == std::errc() && read.ptr == end ? std::optional(cpu) : std::nullopt;
}

// user nice system idle iowait irq softirq steal; guests' time is in user and nice already.
std::int64_t busy_of(std::istringstream& fields) {
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, steal = 0;
  fields >> user >> nice >> system >> idle >> waiting >> irq >> soft >> steal;
  return user + nice + system + irq + soft + steal;
}

}  // namespace

std::optional<std::int64_t> busy_ticks(const std::string& proc_stat, const std::set<int>& cpus) {
  std::istringstream lines(proc_stat);
  std::int64_t busy = 0;
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string word;
    fields >> word;
    const auto cpu = cpu_of(word);
    if (!cpu || cpus.count(*cpu) == 0) continue;
    busy += busy_of(fields);
    ++found;
  }
  if (found == 0 || found != cpus.size()) return std::nullopt;
  return busy;
}

std::optional<double> other_busy_cores(std::optional<std::int64_t> before,
                                       std::optional<std::int64_t> after,
                                       std::int64_t ticks_per_second, std::int64_t own_cpu_ns,
                                       std::int64_t wall_ns) {
  if (!before || !after || ticks_per_second <= 0 || wall_ns <= 0) return std::nullopt;
  const double all_ns =
      static_cast<double>(*after - *before) * kSecond / static_cast<double>(ticks_per_second);
  const double cores = (all_ns - static_cast<double>(own_cpu_ns)) / static_cast<double>(wall_ns);
  return std::max(0.0, cores);
}

LoadWatch::LoadWatch() : cpus_(usable_cpus()), before_(busy_ticks(proc_stat(), cpus_)) {}

std::optional<double> LoadWatch::other_busy_cores(std::int64_t own_cpu_ns,
                                                  std::int64_t wall_ns) const {
  return launch::other_busy_cores(before_, busy_ticks(proc_stat(), cpus_), sysconf(_SC_CLK_TCK),
                                  own_cpu_ns, wall_ns);
}

}  // namespace peakbench::launch
