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
// What an entry has to name; see Fact.
struct FactDetails {
  const char* function = "";
  const char* what = "";
  const char* place = "";
  int rank = 0, ranks = 0;
};
// The same entry counts its calls. What was refused and faults are named once on stderr, too.
PEAKBENCH_EMULATOR_API void enter(Fact kind, const FactDetails& details = {});
// An entry point that is not emulated was called.
PEAKBENCH_EMULATOR_API void refuse(const char* name);
// A workspace counts as none, held while the call runs that asks for it now: the ledger keeps how
// much was allocated meanwhile. With no lock held.
PEAKBENCH_EMULATOR_API void missing_workspace(Workspace kind, const char* function = "");

}  // namespace peakbench::emulator
