// trace.sqlite: a trace on disk. Tables are documented in docs/trace.md with an example query.
#pragma once

#include <cstdint>
#include <string>

#include "trace/trace.h"

namespace peakbench::trace {

// Grows when a reader of the last one would misread a file; new tables and views leave it.
inline constexpr std::int64_t kTraceSchemaVersion = 2;

// Atomic: written beside and renamed; throws HostError with the path and the system's reason. A
// trace that does not add up is written too, without what is derived from it, its error in the
// table `trace`.
void write_trace(const Trace& trace, const std::string& path);

// Throws ConfigError with the path: missing, not a trace, cut short, damaged, newer than this
// program.
Trace read_trace(const std::string& path);

}  // namespace peakbench::trace
