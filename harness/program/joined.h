// Buffers that a program makes anew from their last state with torch.cat, step after step. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace peakbench::program {

// Events of allocations: of what torch.cat made, and of the first and last tensor that it joined.
struct Join {
  std::uint64_t result = 0;
  std::vector<std::uint64_t> sources;  // each before `result`
};

// Names the states of each such buffer, in a trace whose phases are decided: kept, "joined buffer
// 1" (2, ...). A state is made by torch.cat from a state that the same line made, and at least one
// state is made from one of an earlier step. A model's input stays one, by that name; other names
// stay as they are. `joins` are in order.
void name_joined(trace::Trace& trace, const std::vector<Join>& joins);

}  // namespace peakbench::program
