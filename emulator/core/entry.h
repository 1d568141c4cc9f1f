#pragma once

#include "core/api.h"
#include "core/core.h"

// For the stand-ins whose vendor headers are not needed: handles and numbers are all they exchange.

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

// Workspaces that the program gives to the vendors' libraries, for who tells them from other memory
// (PyTorch from 2.15 on gives one for each call, and keeps no table of them).

extern "C" {
// Called for each, with the name of the library, while the program's call is under way; with no
// lock of the stand-ins held, on the thread that gave it.
using PeakbenchWorkspaceListener = void (*)(const void* address, const char* library);
// From now on this is called. Null: nobody.
PEAKBENCH_EMULATOR_API void peakbench_emulator_watch_workspaces(
    PeakbenchWorkspaceListener listener);
}

namespace peakbench::emulator {

// A library was given this memory; null: none.
PEAKBENCH_EMULATOR_API void tell_of_workspace(const void* address, const char* library);

}  // namespace peakbench::emulator
