// The limits of a device's context that a program may read and set: CUlimit, which the runtime
// calls cudaLimit.
#pragma once

#include <cstddef>

#include "core/api.h"

namespace peakbench::emulator {

// False where CUDA has no such limit.
PEAKBENCH_EMULATOR_API bool device_limit(int limit, std::size_t* out);
// Remembered for the process. What a raised limit takes of a real card's memory is not charged;
// the ledger names it as unmodelled.
PEAKBENCH_EMULATOR_API bool set_device_limit(int limit, std::size_t value);

}  // namespace peakbench::emulator
