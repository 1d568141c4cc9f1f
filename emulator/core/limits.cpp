#include "core/limits.h"

#include <array>
#include <atomic>

#include "core/own_ledger.h"

namespace peakbench::emulator {
namespace {

// In CUlimit's order, with the driver's defaults: stack of a thread, printf's buffer, heap of
// kernels, synchronisation depth and pending launches of the device's runtime, L2 fetch
// granularity, persisting L2.
std::array<std::atomic<std::size_t>, 7>& limits() {
  static std::array<std::atomic<std::size_t>, 7> limits{1024, 1u << 20, 8u << 20, 2, 2048, 64, 0};
  return limits;
}

bool is_limit(int limit) { return limit >= 0 && limit < static_cast<int>(limits().size()); }

}  // namespace

bool device_limit(int limit, std::size_t* out) {
  if (!is_limit(limit)) return false;
  *out = limits()[limit];
  return true;
}

bool set_device_limit(int limit, std::size_t value) {
  if (!is_limit(limit)) return false;
  if (value > limits()[limit].exchange(value)) enter(Fact::raised_limit);
  return true;
}

}  // namespace peakbench::emulator
