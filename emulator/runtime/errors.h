// How every entry point of the runtime ends: its error remembered as the thread's last one.
#pragma once

#include "core/core.h"
#include "core/machine.h"
#include "runtime/names.h"

#define PEAKBENCH_ENTRY extern "C" __attribute__((visibility("default")))

namespace peakbench::emulator::runtime {

// Success, or why CUDA cannot be used in this process at all.
cudaError_t ready();
// Remembers an error for cudaGetLastError and passes it on.
cudaError_t finish(cudaError_t error);
// The same after ready(): `work` is called only when there is a card.
template <typename Work>
cudaError_t entry(Work&& work) {
  const cudaError_t state = ready();
  return finish(state == cudaSuccess ? work() : state);
}

// The same of what a card does not do once a kernel's check failed and the host knows it.
template <typename Work>
cudaError_t working_entry(Work&& work) {
  return entry([&] { return is_stopped(current_device()) ? cudaErrorAssert : work(); });
}
// And of what waits for the card, or asks how far it is, by which the host gets to know it.
template <typename Work>
cudaError_t waiting_entry(Work&& work) {
  return entry([&] { return meets_device_assert(current_device()) ? cudaErrorAssert : work(); });
}

cudaError_t error_of(MemoryResult result);
cudaError_t error_of(CaptureError error);
inline std::uint64_t number(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
inline bool is_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace peakbench::emulator::runtime
