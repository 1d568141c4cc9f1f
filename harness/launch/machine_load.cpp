#include "launch/machine_load.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace peakbench::launch {
namespace {

constexpr double kSecond = 1e9;

std::string proc_stat() {
  std::ifstream file("/proc/stat");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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
