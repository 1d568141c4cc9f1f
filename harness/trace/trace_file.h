// trace.sqlite: a trace on disk. Tables are documented in docs/trace.md with an example query.
#pragma once

#include <string>

#include "trace/trace.h"

namespace peakbench::trace {

void write_trace(const Trace& trace,
                 const std::string& path);  // atomic; throws TraceError with the path
Trace read_trace(
    const std::string& path);  // throws ConfigError: missing, not a trace, newer version

}  // namespace peakbench::trace
