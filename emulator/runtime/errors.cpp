#include "runtime/errors.h"

namespace peakbench::emulator::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define NAMED(error) error, #error
constexpr ErrorText kErrors[] = {
    {NAMED(cudaSuccess), "no error"},
    {NAMED(cudaErrorInvalidValue), "invalid argument"},
    {NAMED(cudaErrorMemoryAllocation), "out of memory"},
    {NAMED(cudaErrorInitializationError), "initialization error"},
    {NAMED(cudaErrorInvalidConfiguration), "invalid configuration argument"},
    {NAMED(cudaErrorInvalidSymbol), "invalid device symbol"},
    {NAMED(cudaErrorInvalidDevicePointer), "invalid device pointer"},
    {NAMED(cudaErrorInsufficientDriver),
     "CUDA driver version is insufficient for CUDA runtime version"},
    {NAMED(cudaErrorNoDevice), "no CUDA-capable device is detected"},
    {NAMED(cudaErrorInvalidDevice), "invalid device ordinal"},
    {NAMED(cudaErrorInvalidResourceHandle), "invalid resource handle"},
    {NAMED(cudaErrorDeviceUninitialized), "invalid device context"},
    {NAMED(cudaErrorNotReady), "device not ready"},
    {NAMED(cudaErrorPeerAccessAlreadyEnabled), "peer access is already enabled"},
    {NAMED(cudaErrorPeerAccessUnsupported),
     "peer access is not supported between these two devices"},
    {NAMED(cudaErrorHostMemoryAlreadyRegistered),
     "part or all of the requested memory range is already mapped"},
    {NAMED(cudaErrorHostMemoryNotRegistered),
     "pointer does not correspond to a registered memory region"},
    {NAMED(cudaErrorNotSupported), "operation not supported (the emulated card does not do this)"},
    {NAMED(cudaErrorStreamCaptureUnsupported), "operation not permitted when stream is capturing"},
    {NAMED(cudaErrorStreamCaptureInvalidated),
     "operation failed due to a previous error during capture"},
    {NAMED(cudaErrorCapturedEvent),
     "operation not permitted on an event last recorded in a capturing stream"},
    {NAMED(cudaErrorAssert), "device-side assert triggered"},
    {NAMED(cudaErrorUnsupportedLimit), "limit is not supported on this architecture"},
    {NAMED(cudaErrorIllegalState), "the operation cannot be performed in the present state"},
    {NAMED(cudaErrorUnknown), "unknown error"},
};

ErrorText text_of(cudaError_t error) {
  for (const ErrorText& known : kErrors)
    if (known.error == error) return known;
  return {error, "unrecognized error code", "unrecognized error code"};
}

}  // namespace

cudaError_t ready() {
  const auto state = machine_state();
  if (state == MachineState::no_card) return cudaErrorNoDevice;
  if (state == MachineState::forked) return cudaErrorInitializationError;
  // Any driver of a CUDA release runs programs of all its minor versions.
  return driver_cuda_version() / 1000 < PEAKBENCH_CUDA_MAJOR ? cudaErrorInsufficientDriver
                                                             : cudaSuccess;
}

cudaError_t finish(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace peakbench::emulator::runtime

using namespace peakbench::emulator::runtime;

// For generated stubs.
extern "C" __attribute__((visibility("hidden"))) int peakbench_ready() { return finish(ready()); }

PEAKBENCH_ENTRY cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

PEAKBENCH_ENTRY cudaError_t cudaPeekAtLastError() { return last_error; }

PEAKBENCH_ENTRY const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }

PEAKBENCH_ENTRY const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
