// Statistics of timed steps, one definition for the worker and for what joins workers.
#pragma once

#include <vector>

#include "result/case.h"

namespace peakbench::result {

// Nearest rank, so always a step that was measured. No step: zeros.
StepTimes step_times_of(std::vector<std::int64_t> step_times_ns);

}  // namespace peakbench::result
