// A trace in the Chrome trace format (JSON), for Perfetto: counters by category, phases as slices.
#pragma once

#include <string>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Written atomically. Throws HostError with the path. On an emulated card one event is one
// microsecond, which the file's metadata mentions.
void write_chrome_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                        const std::string& path);

}  // namespace peakbench::trace
