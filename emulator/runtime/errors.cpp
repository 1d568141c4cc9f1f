#include "runtime/errors.h"

namespace peakbench::emulator::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorNotSupported, "cudaErrorNotSupported",
     "operation not supported (the emulated card does not do this)"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorUnsupportedLimit, "cudaErrorUnsupportedLimit",
     "limit is not supported on this architecture"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* find(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

}  // namespace

cudaError_t ready() {
  switch (machine_state()) {
    case MachineState::ready:
      break;
    case MachineState::no_card:
      return cudaErrorNoDevice;
    case MachineState::forked:
      return cudaErrorInitializationError;
  }
  // Any driver of a CUDA release runs programs of all its minor versions.
  return driver_cuda_version() / 1000 < PEAKBENCH_CUDA_MAJOR ? cudaErrorInsufficientDriver
                                                             : cudaSuccess;
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t error_of(CaptureError error) {
  switch (error) {
    case CaptureError::unsupported:
      return cudaErrorStreamCaptureUnsupported;
    case CaptureError::captured_event:
      return cudaErrorCapturedEvent;
    case CaptureError::none:
      break;
  }
  return cudaSuccess;
}

cudaError_t error_of(MemoryResult result) {
  switch (result) {
    case MemoryResult::ok:
      return cudaSuccess;
    case MemoryResult::out_of_memory:
    case MemoryResult::no_address_space:
      return cudaErrorMemoryAllocation;
    case MemoryResult::invalid_value:
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace peakbench::emulator::runtime

using namespace peakbench::emulator::runtime;

PEAKBENCH_ENTRY cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

PEAKBENCH_ENTRY cudaError_t cudaPeekAtLastError() { return last_error; }

PEAKBENCH_ENTRY const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* known = find(error);
  return known ? known->text : "unrecognized error code";
}

PEAKBENCH_ENTRY const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* known = find(error);
  return known ? known->name : "unrecognized error code";
}
