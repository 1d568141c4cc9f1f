// cuFFT: plans that need no workspace, which the vendor's do. PyTorch keeps plans, and allocates
// their workspace for each execution: counted there.
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
  return give(workspace_bytes, std::size_t{0});
}

PEAKBENCH_ENTRY int cufftXtExec(int, void*, void*, int) {
  missing_workspace(Workspace::cufft_plan);
  count_device_work();
  return 0;
}
