// Workspaces that the program gives to the vendors' libraries, for who tells them from other memory
// (PyTorch from 2.15 on gives one for each call, and keeps no table of them).
#pragma once

#include "core/api.h"

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
