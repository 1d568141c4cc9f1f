// trace.sqlite: a trace on disk. docs/reference/trace.md documents the tables, with an example
// query.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/lifetimes.h"
#include "trace/trace.h"

namespace peakbench::trace {

// Grows when a reader of the last one would misread a file; new tables and views leave it.
inline constexpr std::int64_t kTraceSchemaVersion = 8;

// Written atomically; throws HostError with the path and the system's reason.
void write_trace(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                 const std::string& path);
// The same with unknown lifetimes. An inconsistent trace is written, too, without data derived from
// it, and with its error in the table `trace`.
void write_trace(const Trace& trace, const std::string& path);

// Reads a file of any origin. Neither it nor a file next to it is changed. Texts are returned as
// UTF-8. Throws ConfigError with the path: missing, not a regular file, not a trace, cut short,
// damaged, newer than this program. Damaged: columns of another type, numbers out of range, sizes
// whose sum overflows 64 bits, unordered steps or scopes, invalid tables.
Trace read_trace(const std::string& path);

// What read_trace() would refuse of this trace, once it is written; empty where nothing. Indices
// must be in range.
std::string why_not_readable(const Trace& trace);

}  // namespace peakbench::trace
