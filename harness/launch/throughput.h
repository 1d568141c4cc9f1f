// The rounds of a case as one throughput.
#pragma once

#include <cstdint>
#include <optional>

#include "result/case.h"

namespace peakbench::launch {

// Adds what one throughput worker `found` in a round. The statistics are over all steps of all
// rounds, in the order of the rounds; those of a single round stay the worker's own.
void add_round(std::optional<result::Throughput>& all, const result::Throughput& found,
               result::TimingRound round, const result::CaseSpec& spec);

}  // namespace peakbench::launch
