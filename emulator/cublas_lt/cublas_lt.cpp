// cuBLASLt: descriptors, and a heuristic that finds one algorithm which needs no workspace.
// PyTorch's own workspace for it is allocated before the heuristic is asked, and does not depend on
// the answer.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/entry.h"

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidValue = 7;

// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

}  // namespace

PEAKBENCH_ENTRY const char* cublasLtGetStatusString(int status) {
  return status_text(status, "an error of the emulated cuBLASLt");
}
PEAKBENCH_ENTRY const char* cublasLtGetStatusName(int status) {
  return status == kSuccess ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS of the emulated cuBLASLt";
}
// As the release of CUDA that it is of: 12.4 is 120400.
PEAKBENCH_ENTRY std::size_t cublasLtGetVersion() {
  return std::size_t{10} * static_cast<std::size_t>(cuda_version(PEAKBENCH_CUDA_MAJOR));
}

PEAKBENCH_ENTRY int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*,
                                                   int requested, HeuristicResult* results,
                                                   int* found) {
  if (!results || !found || requested < 1) return kInvalidValue;
  std::memset(results, 0, sizeof *results);
  results->waves = 1;
  *found = 1;
  return kSuccess;
}

// Reads and writes device memory that the caller allocated, workspace included.
PEAKBENCH_ENTRY int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*,
                                   void*, const void*, const void*, void*, void*, void*,
                                   const void*, void* workspace, std::size_t, void*) {
  tell_of_workspace(workspace, "cuBLASLt");
  count_device_work();
  return kSuccess;
}
