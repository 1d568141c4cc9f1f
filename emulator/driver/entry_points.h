// How entry points of the driver begin and end.
#pragma once

#include <cuda.h>

#include "core/core.h"
#include "core/machine.h"

namespace peakbench::emulator::driver {

template <typename Work>
CUresult entry(Work&& work) {
  const auto state = machine_state();
  if (state == MachineState::ready) return work();
  return state == MachineState::no_card ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_NOT_INITIALIZED;
}

// Answers through a pointer, which must not be null.
template <typename Value, typename Find>
CUresult answer(Value* out, Find&& find) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = find();
    return CUDA_SUCCESS;
  });
}
// The same of a device.
template <typename Value, typename Find>
CUresult answer(int device, Value* out, Find&& find) {
  if (!out || is_device(device)) return answer(out, find);
  return entry([] { return CUDA_ERROR_INVALID_DEVICE; });
}

inline CUresult error_of(CaptureError error) { return static_cast<CUresult>(error); }
inline CUresult error_of(MemoryResult result) {
  return result == MemoryResult::no_address_space ? CUDA_ERROR_OUT_OF_MEMORY
                                                  : static_cast<CUresult>(result);
}

inline void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }
template <typename Memory>
Memory* address(Memory* of_host) {
  return of_host;
}

}  // namespace peakbench::emulator::driver
