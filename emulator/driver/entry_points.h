// How entry points of the driver begin and end.
#pragma once

#include <cuda.h>

#include "core/core.h"
#include "core/machine.h"

#define PEAKBENCH_ENTRY extern "C" __attribute__((visibility("default")))

namespace peakbench::emulator::driver {

template <typename Work>
CUresult entry(Work&& work) {
  switch (machine_state()) {
    case MachineState::ready:
      return work();
    case MachineState::no_card:
      return CUDA_ERROR_NO_DEVICE;
    case MachineState::forked:
      break;
  }
  return CUDA_ERROR_NOT_INITIALIZED;
}

inline CUresult error_of(CaptureError error) {
  switch (error) {
    case CaptureError::unsupported:
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    case CaptureError::captured_event:
      return CUDA_ERROR_CAPTURED_EVENT;
    case CaptureError::none:
      break;
  }
  return CUDA_SUCCESS;
}

inline CUresult error_of(MemoryResult result) {
  switch (result) {
    case MemoryResult::ok:
      return CUDA_SUCCESS;
    case MemoryResult::out_of_memory:
    case MemoryResult::no_address_space:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case MemoryResult::invalid_value:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

inline std::uint64_t number(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
inline void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }
inline bool is_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace peakbench::emulator::driver
