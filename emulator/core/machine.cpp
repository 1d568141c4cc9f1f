#include "core/machine.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include "core/callers.h"
#include "core/own_ledger.h"
#include "core/state.h"
#include "core/symbols.h"
#include "core/values_hook.h"
#include "core/vendor_versions.h"

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

namespace {

enum class Stop { none, failed, known };
std::array<std::atomic<Stop>, kLedgerDevices> stops{};

std::atomic<Stop>* stop_of(int device) {
  const auto at = static_cast<std::size_t>(device);
  return device >= 0 && at < stops.size() ? &stops[at] : nullptr;
}

bool is_capturing() {
  auto [s, lock] = LockedState{};
  return !s.queues.captures.empty();
}

// Every launch is waited for.
bool launches_block() {
  const char* text = std::getenv("CUDA_LAUNCH_BLOCKING");
  return text && std::string_view(text) == "1";
}

}  // namespace

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
  using namespace peakbench::emulator;
  auto* const stop = stop_of(device);
  auto none = Stop::none;
  if (!stop || is_capturing()) return;
  if (!stop->compare_exchange_strong(none, launches_block() ? Stop::known : Stop::failed)) return;
  char place[64] = "";
  find_python_place(place, sizeof place);
  enter(Fact::device_assert, {.function = operation, .what = what, .place = place});
}

namespace peakbench::emulator {

std::string loaded_library(const char* name) {
  struct Search {
    const char* name;
    std::string found;
  } search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const char* slash = std::strrchr(info->dlpi_name, '/');
        if (!slash || std::strcmp(slash + 1, wanted.name) != 0) return 0;
        wanted.found = info->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

bool is_pytorchs(const void* code) {
  // PyTorch is never unloaded, so that its addresses stay its own; others may be given anew.
  static std::mutex mutex;
  static auto* const seen = new std::set<const void*>;
  const std::lock_guard lock(mutex);
  if (seen->contains(code)) return true;
  static constexpr const char* kLibraries[] = {"libtorch_cuda.so", "libc10_cuda.so",
                                               "libtorch_cpu.so", "libtorch_python.so"};
  const bool is =
      std::ranges::any_of(kLibraries, [&](const char* library) { return lies_in(code, library); });
  if (is) seen->insert(code);
  return is;
}

namespace {

// torch of torch/lib/libtorch_cpu.so.
VendorVersions of_loaded_pytorch() {
  const auto library = loaded_library("libtorch_cpu.so");
  const auto folder = library.substr(0, library.rfind("/lib/"));
  return library.empty() || folder == library ? VendorVersions() : vendor_versions_beside(folder);
}

}  // namespace

int cudnn_version() {
  if (card().cudnn_version) return card().cudnn_version;
  static const int found = of_loaded_pytorch().cudnn;
  return found;
}

int nccl_version() {
  if (card().nccl_version) return card().nccl_version;
  static const int found = of_loaded_pytorch().nccl;
  return found;
}

}  // namespace peakbench::emulator
