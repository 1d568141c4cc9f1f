// cuSPARSELt is refused (entry_points.txt); its statuses have texts all the same.
#include "core/entry.h"

using namespace peakbench::emulator;

PEAKBENCH_ENTRY const char* cusparseLtGetErrorName(int status) {
  return status == kSuccess ? "CUSPARSE_STATUS_SUCCESS"
                            : "CUSPARSE_STATUS of the emulated cuSPARSELt";
}
PEAKBENCH_ENTRY const char* cusparseLtGetErrorString(int status) {
  return status_text(status, "an error of the emulated cuSPARSELt");
}
