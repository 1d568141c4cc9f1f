// A trace in the Chrome trace format (JSON), for Perfetto: counters by category, phases as slices.
#pragma once

#include <string>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Written atomically; the path goes into the HostError where it cannot be. On an emulated card one
// event is one microsecond, and the file's metadata says so.
void write_chrome_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                        const std::string& path);

}  // namespace peakbench::trace
