// What a step makes a device do, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result/work.h"

namespace peakbench::reports {

std::string flops_text(std::int64_t flops);  // "5.82 GFLOP"; "0" for none

// What a step does that another, `reference`, does not, or nullptr: that it does at all. Each a few
// words: "recomputes 96.2% of the forward's FLOPs", "FLOPs +32.2%", "copies 0.345 GiB to the host
// and back". Empty: nothing worth a word.
std::vector<std::string> work_costs(const result::StepWork& work,
                                    const result::StepWork* reference);

}  // namespace peakbench::reports
