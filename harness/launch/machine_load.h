// What else kept the machine busy while a worker ran: the processor's own books before and after,
// less what the worker took.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace peakbench::launch {

// Ticks that the processors of `cpus` have worked since the system started, by the text of
// /proc/stat: everything but idle and waiting for a disk; what another virtual machine took
// (`steal`) counts as work. Nullopt where the text lacks one of the processors.
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
