#include "core/device_assert.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/python_place.h"
#include "core/state.h"
#include "core/values_hook.h"

namespace peakbench::emulator {
namespace {

enum class Stop { none, failed, known };
std::array<std::atomic<Stop>, kLedgerDevices> stops{};

std::atomic<Stop>* stop_of(int device) {
  const auto at = static_cast<std::size_t>(device);
  return device >= 0 && at < stops.size() ? &stops[at] : nullptr;
}

bool is_capturing() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return !s.queues.captures.empty();
}

// Every launch is waited for.
bool launches_block() {
  const char* text = std::getenv("CUDA_LAUNCH_BLOCKING");
  return text && std::string_view(text) == "1";
}

}  // namespace

void fail_device_assert(int device, const char* operation, const char* what) {
  auto* const stop = stop_of(device);
  auto none = Stop::none;
  if (!stop || is_capturing()) return;
  if (!stop->compare_exchange_strong(none, launches_block() ? Stop::known : Stop::failed)) return;
  char place[64] = "";
  find_python_place(place, sizeof place);
  enter(Fact::device_assert, {.function = operation, .what = what, .place = place});
}

bool meets_device_assert(int device) {
  auto* const stop = stop_of(device);
  if (!stop || stop->load(std::memory_order_relaxed) == Stop::none) return false;
  *stop = Stop::known;
  return true;
}

bool is_stopped(int device) {
  const auto* const stop = stop_of(device);
  return stop && stop->load(std::memory_order_relaxed) == Stop::known;
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_assert_failed(int device, const char* operation,
                                                 const char* what) {
  peakbench::emulator::fail_device_assert(device, operation, what);
}
