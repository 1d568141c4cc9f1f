// A trace packed for the interactive chart: columns of variable-length integers, deflated, in
// base64. templates/html/trace.js reads it.
//
// After inflating: a 32-bit little-endian length, a JSON header of that length, then these columns,
// whose lengths are in the header. Integers have 7 bits a byte, the lowest first; the high bit says
// that more follow.
//
//   allocations: gap from the previous one's event, life in events (0: to the end), bytes asked,
//                slack, category, module + 1, operator + 1, name + 1
//   reserved:    gap from the previous change's event, change (zigzag)
//   each level:  gap from the previous sample's event, time since the previous in ns (only with
//                `clocked`), then for each category the change in bytes (zigzag)
#pragma once

#include <string>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::reports {

// `whole`: with every allocation; else only the coarsest level.
std::string pack_trace(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                       std::uint64_t peak_event, bool whole);

std::string base64(const std::string& bytes);

}  // namespace peakbench::reports
