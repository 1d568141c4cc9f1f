// Batched factorisations and solutions: results go to device memory. What the host is told, whether
// the arguments were right, they were; a problem that fails for its values is not seen.
#include "core/entry.h"

using namespace peakbench::emulator;

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
