// cuSPARSE: handles and descriptors as numbers, and texts for its statuses. Sizes of workspaces and
// what is left to do on the device: entry_points.txt.
#include "core/entry.h"

using namespace peakbench::emulator;

PEAKBENCH_ENTRY const char* cusparseGetErrorName(int status) {
  return status == kSuccess ? "CUSPARSE_STATUS_SUCCESS"
                            : "CUSPARSE_STATUS of the emulated cuSPARSE";
}
PEAKBENCH_ENTRY const char* cusparseGetErrorString(int status) {
  return status_text(status, "an error of the emulated cuSPARSE");
}

PEAKBENCH_ENTRY int cusparseCreate(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseCreateMatDescr(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseCreateBsrsv2Info(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseCreateBsrsm2Info(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseSpSV_createDescr(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseSpSM_createDescr(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseSpGEMM_createDescr(void** out) { return give_handle(out); }
// Their further arguments (sizes, pointers, types) are not read again.
PEAKBENCH_ENTRY int cusparseCreateCoo(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseCreateDnVec(void** out) { return give_handle(out); }
PEAKBENCH_ENTRY int cusparseCreateDnMat(void** out) { return give_handle(out); }

// Positions of a pivot that is zero: there are no values, so there is none.
PEAKBENCH_ENTRY int cusparseXbsrsv2_zeroPivot(void*, void*, int* out) { return give(out, -1); }
PEAKBENCH_ENTRY int cusparseXbsrsm2_zeroPivot(void*, void*, int* out) { return give(out, -1); }
