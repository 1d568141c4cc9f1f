#include <cstddef>

#include "core/entry.h"

// cuBLAS: handles and their modes. Products are no-ops (entry_points.txt): they write memory that
// the caller allocated, and PyTorch gives each handle its workspace itself.

using namespace peakbench::emulator;

namespace {

constexpr int kNotInitialized = 1;
constexpr int kNoDevice = kNotInitialized;

struct Handle {
  int math_mode = 0;
  int pointer_mode = 0;
  void* stream = nullptr;
};

Handles<Handle>& handles() {
  static auto* const handles = new Handles<Handle>(kNotInitialized);
  return *handles;
}

}  // namespace

// A handle of its own for each call: PyTorch keeps a workspace for every handle and stream.
PEAKBENCH_ENTRY int cublasCreate_v2(void** out) {
  if (machine_state() != MachineState::ready) return kNoDevice;
  return handles().create(out);
}

PEAKBENCH_ENTRY int cublasDestroy_v2(void* handle) { return handles().destroy(handle); }

#define SETTING(function, member)                                                         \
  PEAKBENCH_ENTRY int cublasSet##function(void* handle, decltype(Handle::member) value) { \
    return handles().with(handle, [&](Handle& known) { known.member = value; });          \
  }                                                                                       \
  PEAKBENCH_ENTRY int cublasGet##function(void* handle, decltype(Handle::member)* out) {  \
    return handles().with(handle, [&](Handle& known) { *out = known.member; });           \
  }
SETTING(MathMode, math_mode)
SETTING(PointerMode_v2, pointer_mode)
SETTING(Stream_v2, stream)
#undef SETTING

PEAKBENCH_ENTRY int cublasSetWorkspace_v2(void* handle, void* workspace, std::size_t) {
  const int status = handles().with(handle, [](Handle&) {});
  if (status == kSuccess) tell_of_workspace(workspace, "cuBLAS");
  return status;
}

// As the release of CUDA that it is of: 12.4 is 120400.
PEAKBENCH_ENTRY int cublasGetVersion_v2(void*, int* version) {
  return give(version, cuda_version(PEAKBENCH_CUDA_MAJOR) * 10);
}
PEAKBENCH_ENTRY const char* cublasGetStatusName(int status) {
  return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS of the emulated cuBLAS";
}
PEAKBENCH_ENTRY const char* cublasGetStatusString(int status) {
  return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "an error of the emulated cuBLAS";
}

// Batched factorisations and solutions: results go to device memory. What the host is told, whether
// the arguments were right, they were; a problem that fails for its values is not seen.

namespace {

int worked(int* info) {
  count_device_work();
  return give(info, 0);
}

}  // namespace

#define BATCHED(T)                                                                                 \
  PEAKBENCH_ENTRY int cublas##T##geqrfBatched(void*, int, int, void*, int, void*, int* info,       \
                                              int) {                                               \
    return worked(info);                                                                           \
  }                                                                                                \
  PEAKBENCH_ENTRY int cublas##T##getrsBatched(void*, int, int, int, void*, int, void*, void*, int, \
                                              int* info, int) {                                    \
    return worked(info);                                                                           \
  }                                                                                                \
  PEAKBENCH_ENTRY int cublas##T##gelsBatched(void*, int, int, int, int, void*, int, void*, int,    \
                                             int* info, int*, int) {                               \
    return worked(info);                                                                           \
  }
BATCHED(S)
BATCHED(D)
BATCHED(C)
BATCHED(Z)
#undef BATCHED
