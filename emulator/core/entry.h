// For the stand-ins whose vendor headers are not needed: handles and numbers are all they exchange.
#pragma once

#include "core/core.h"

#define PEAKBENCH_ENTRY extern "C" __attribute__((visibility("default")))

namespace peakbench::emulator {

// Every one of the vendors' libraries says success with zero.
inline constexpr int kSuccess = 0;

// What is answered where an entry point has nowhere to put its answer. The libraries have other
// numbers for that; none of them is success.
inline constexpr int kNowhere = 3;

// Answers an "create" entry point.
inline int give_handle(void** out) {
  if (!out) return kNowhere;
  *out = new_handle();
  return kSuccess;
}

// For entry points that give a status a name: nobody chooses by it, and it is never no text at all.
inline const char* status_text(int status, const char* error) {
  return status == kSuccess ? "success" : error;
}

template <typename Value>
int give(Value* out, Value value) {
  if (out) *out = value;
  return kSuccess;
}

}  // namespace peakbench::emulator
