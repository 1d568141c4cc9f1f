// cuFFT: plans that need no workspace, which the vendor's do; counted.
#include <cstddef>

#include "core/entry.h"

using namespace peakbench::emulator;

PEAKBENCH_ENTRY int cufftCreate(int* plan) {
  static int plans = 0;
  return give(plan, ++plans);
}

PEAKBENCH_ENTRY int cufftXtMakePlanMany(int, int, long long*, long long*, long long, long long, int,
                                        long long*, long long, long long, int, long long,
                                        std::size_t* workspace_bytes, int) {
  unmodelled("cufft plan workspace");
  return give(workspace_bytes, std::size_t{0});
}
