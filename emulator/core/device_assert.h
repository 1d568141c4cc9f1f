// Checks that a kernel makes of what it is given (a device-side assert). One that fails stops the
// card for the process: the next call that waits for it says so, and after that every one that
// gives it work or asks for memory.
#pragma once

#include "core/api.h"

namespace peakbench::emulator {

// A check fails on this device, in what `operation` of PyTorch launches: a fault, with the line of
// the program. Of several, the first: a card runs nothing after it. Nothing happens while a graph
// is captured, which runs nothing. Takes Python's lock: with no lock held.
PEAKBENCH_EMULATOR_API void fail_device_assert(int device, const char* operation, const char* what);

// Whether one has failed there. The host waits for the device, or asks how far it is: from now on
// it knows.
PEAKBENCH_EMULATOR_API bool meets_device_assert(int device);
// Whether the host knows of one.
PEAKBENCH_EMULATOR_API bool is_stopped(int device);

}  // namespace peakbench::emulator
