// cuDNN outside its graph interface: version, handles, descriptors, batch normalisation's sizes.
#include <cstddef>
#include <mutex>
#include <unordered_map>

#include "core/entry.h"
#include "cudnn/status.h"
#include "cudnn/version.h"
#include "vendor_versions.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

struct Streams {
  std::mutex mutex;
  std::unordered_map<void*, void*> of_handle;
};

Streams& streams() {
  static auto* const streams = new Streams;
  return *streams;
}

int no_workspace(std::size_t* out) {
  missing_workspace(Workspace::cudnn_batch_norm);
  return give(out, std::size_t{0});
}

}  // namespace

// PyTorch chooses attention and engines by it.
std::size_t peakbench::emulator::cudnn::version() {
  constexpr int kOwn = kCudnnMajor * 10000 + kCudnnMinor * 100 + kCudnnPatch;
  return cudnn_version() ? cudnn_version() : kOwn;
}

PEAKBENCH_ENTRY std::size_t cudnnGetVersion() { return version(); }
PEAKBENCH_ENTRY std::size_t cudnnGetCudartVersion() { return cuda_version(); }

PEAKBENCH_ENTRY int cudnnGetProperty(int which, int* out) {
  const int number = static_cast<int>(version());
  switch (which) {
    case 0:
      return give(out, number / 10000);
    case 1:
      return give(out, number / 100 % 100);
    case 2:
      return give(out, number % 100);
    default:
      return kBadParameter;
  }
}

PEAKBENCH_ENTRY const char* cudnnGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED (the emulated card does not do this)";
    default:
      return "an error of the emulated cuDNN";
  }
}
PEAKBENCH_ENTRY void cudnnGetLastErrorString(char* out, std::size_t size) {
  if (size) *out = 0;
}

PEAKBENCH_ENTRY int cudnnCreate(void** out) {
  if (machine_state() != MachineState::ready) return kNotInitialized;
  if (const int status = give_handle(out); status != kSuccess) return status;
  std::lock_guard lock(streams().mutex);
  streams().of_handle[*out] = nullptr;
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnSetStream(void* handle, void* stream) {
  std::lock_guard lock(streams().mutex);
  streams().of_handle[handle] = stream;
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnGetStream(void* handle, void** stream) {
  std::lock_guard lock(streams().mutex);
  return give(stream, streams().of_handle[handle]);
}

PEAKBENCH_ENTRY int cudnnCreateTensorDescriptor(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cudnnCreateFilterDescriptor(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cudnnCreateConvolutionDescriptor(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cudnnCreateActivationDescriptor(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cudnnCreatePoolingDescriptor(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cudnnCreateSpatialTransformerDescriptor(void** out) { return give_handle(out); }

PEAKBENCH_ENTRY int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*,
                                                                             void*, void*, void*,
                                                                             void*,
                                                                             std::size_t* out) {
  return no_workspace(out);
}
PEAKBENCH_ENTRY int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*,
                                                                      void*, void*, void*, void*,
                                                                      void*, std::size_t* out) {
  return no_workspace(out);
}
PEAKBENCH_ENTRY int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*,
                                                                         void*, std::size_t* out) {
  return no_workspace(out);
}
