// cuSOLVER: handles, and questions for the size of a workspace, answered with none and counted.
// Factorisations are no-ops (entry_points.txt): results and info codes go to device memory, where
// the host reads zeros, "it worked".
#include "core/entry.h"

using namespace peakbench::emulator;

namespace {

int no_workspace(int* out) {
  unmodelled("cusolver singular value decomposition workspace");
  return give(out, 0);
}

}  // namespace

PEAKBENCH_ENTRY int cusolverDnCreate(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusolverDnCreateParams(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusolverDnCreateGesvdjInfo(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusolverDnCreateSyevjInfo(void** out) { return give_handle(out); }

// Of one matrix: the method that PyTorch's linalg.svd takes unless it is told otherwise.
// The batched one is taken where both sides are at most 32.
#define GESVDJ_SIZE(T)                                                                         \
  PEAKBENCH_ENTRY int cusolverDn##T##gesvdj_bufferSize(void*, int, int, int, int, const void*, \
                                                       int, const void*, const void*, int,     \
                                                       const void*, int, int* size, void*) {   \
    return no_workspace(size);                                                                 \
  }                                                                                            \
  PEAKBENCH_ENTRY int cusolverDn##T##gesvdjBatched_bufferSize(                                 \
      void*, int, int, int, const void*, int, const void*, const void*, int, const void*, int, \
      int* size, void*, int) {                                                                 \
    return no_workspace(size);                                                                 \
  }
GESVDJ_SIZE(S)
GESVDJ_SIZE(D)
#undef GESVDJ_SIZE
