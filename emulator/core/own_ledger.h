// The ledger of this process, and what enters it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/api.h"
#include "core/ledger.h"
#include "core/values_hook.h"

namespace peakbench::emulator {

PEAKBENCH_EMULATOR_API Ledger& ledger();
// `caller`: the code that launches it.
PEAKBENCH_EMULATOR_API void count_launch(std::uint64_t stream, PeakbenchWork work,
                                         const void* caller);
// Of a kernel whose arguments are known: `words` are all that could be addresses in them.
PEAKBENCH_EMULATOR_API void count_launch(std::uint64_t stream, PeakbenchWork work,
                                         const void* caller,
                                         const std::vector<std::uint64_t>& words);
PEAKBENCH_EMULATOR_API void count_graph_launch();
// A library's call that would have made the device write memory.
PEAKBENCH_EMULATOR_API void count_device_work();
// An entry point that is not emulated was called: recorded, and named once on stderr.
PEAKBENCH_EMULATOR_API void refuse(const char* name);
// Something that is wrong in the program, or would make its figures wrong: recorded, and named once
// on stderr.
PEAKBENCH_EMULATOR_API void fault(const char* what);
// A figure that the vendor's library decides was answered without a model of it.
PEAKBENCH_EMULATOR_API void unmodelled(const char* what);
// The same of a workspace that counts as none, held while the call runs that asks for it now: the
// ledger keeps how much was allocated meanwhile. With no lock held.
PEAKBENCH_EMULATOR_API void missing_workspace(const char* what);

}  // namespace peakbench::emulator
