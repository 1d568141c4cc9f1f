// CUPTI: may be switched on, and has nothing to tell: no kernel runs, so there are no activities.
#include "core/entry.h"
#include "core/timing.h"

using namespace peakbench::emulator;

namespace {
constexpr int kNoMoreRecords = 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
}

PEAKBENCH_ENTRY int cuptiActivityGetNextRecord(unsigned char*, unsigned long, void** record) {
  if (record) *record = nullptr;
  return kNoMoreRecords;
}
PEAKBENCH_ENTRY int cuptiActivityGetNumDroppedRecords(void*, unsigned, unsigned long* out) {
  return give(out, 0ul);
}
PEAKBENCH_ENTRY int cuptiActivityPopExternalCorrelationId(int, unsigned long* out) {
  return give(out, 0ul);
}
PEAKBENCH_ENTRY int cuptiActivityEnable(int) {
  card_is_profiled();
  return kSuccess;
}
PEAKBENCH_ENTRY int cuptiGetVersion(unsigned* out) {
  return give(out, static_cast<unsigned>(PEAKBENCH_CUDA_MAJOR) * 10000);
}
PEAKBENCH_ENTRY int cuptiGetResultString(int result, const char** out) {
  return give(out, result == kSuccess ? "CUPTI_SUCCESS" : "a result of the emulated CUPTI");
}
