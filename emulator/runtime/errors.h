// How every entry point of the runtime ends: its error remembered as the thread's last one.
#pragma once

#include "core/core.h"
#include "core/machine.h"
#include "runtime/names.h"

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

// Answers through a pointer, which must not be null.
template <typename Value, typename Find>
cudaError_t answer(Value* out, Find&& find) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    *out = find();
    return cudaSuccess;
  });
}
// The same of a device.
template <typename Value, typename Find>
cudaError_t answer(int device, Value* out, Find&& find) {
  if (!out || is_device(device)) return answer(out, find);
  return entry([] { return cudaErrorInvalidDevice; });
}

inline cudaError_t error_of(MemoryResult result) {
  return result == MemoryResult::no_address_space ? cudaErrorMemoryAllocation
                                                  : static_cast<cudaError_t>(result);
}
inline cudaError_t error_of(CaptureError error) { return static_cast<cudaError_t>(error); }

}  // namespace peakbench::emulator::runtime
