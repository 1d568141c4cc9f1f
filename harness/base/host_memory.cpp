#include "base/host_memory.h"

#include <sys/resource.h>

#include <array>
#include <cstdio>

namespace peakbench {

namespace {

// The limit on this process's address space (ulimit -v); 0: none.
std::int64_t address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

}  // namespace

std::string no_memory_text(std::int64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  std::string text = "the machine gave no memory";
  if (bytes > 0) text += " for " + std::to_string(bytes) + " bytes";
  const auto limit = address_space_limit();
  if (limit == 0) return text + "; free some";
  std::array<char, 32> size{};
  std::snprintf(size.data(), size.size(), "%.2f GiB", static_cast<double>(limit) / kGiB);
  return text + "; the address space is limited to " + size.data() + " (ulimit -v): raise it";
}

}  // namespace peakbench
