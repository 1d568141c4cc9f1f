// Several throughput workers' steps as one.
#pragma once

#include <vector>

#include "result/case.h"

namespace peakbench::launch {

// All steps of all repetitions, in order; statistics over all of them. One repetition is returned
// as it is. `repetitions` must not be empty.
result::Throughput combine(const std::vector<result::Throughput>& repetitions,
                           const result::CaseSpec& spec);

}  // namespace peakbench::launch
