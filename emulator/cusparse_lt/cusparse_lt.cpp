// cuSPARSELt: texts for its statuses, and which of its algorithms there are. Sizes of workspaces
// and what is left to do on the device: entry_points.txt.
#include <cstring>

#include "core/entry.h"

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidValue = 3;

// cusparseLtMatmulAlgAttribute_t.
enum Attribute { kId, kIdsEnd, kSearchIterations, kSplitK, kSplitKMode, kSplitKBuffers };

// One algorithm, which splits nothing.
int of_the_algorithm(int attribute) {
  return attribute == kIdsEnd || attribute == kSearchIterations || attribute == kSplitK ? 1 : 0;
}

}  // namespace

PEAKBENCH_ENTRY const char* cusparseLtGetErrorName(int status) {
  return status == kSuccess ? "CUSPARSE_STATUS_SUCCESS"
                            : "CUSPARSE_STATUS of the emulated cuSPARSELt";
}
PEAKBENCH_ENTRY const char* cusparseLtGetErrorString(int status) {
  return status_text(status, "an error of the emulated cuSPARSELt");
}

PEAKBENCH_ENTRY int cusparseLtMatmulAlgGetAttribute(const void*, const void*, int attribute,
                                                    void* out, std::size_t bytes) {
  const int value = of_the_algorithm(attribute);
  if (attribute < kId || attribute > kSplitKBuffers || !out || bytes != sizeof value)
    return kInvalidValue;
  std::memcpy(out, &value, sizeof value);
  return kSuccess;
}
