// A PyTorch memory snapshot (snapshot.pickle) of a trace, for `python -m torch.cuda._memory_viz`
// and pytorch.org/memory_viz. docs/reference/trace.md says what is synthesised where.
#pragma once

#include <string>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// Pickle protocol 2, written atomically. Every space is a device of the snapshot, in order. A space
// without segments (cpu) gets one segment for each stretch of addresses it used. Entries carry
// `category`; `frames` are operator and module. On an emulated card, time_us is the event's number.
// Throws HostError with the path where it cannot be written.
void write_memory_snapshot(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                           const std::string& path);

}  // namespace peakbench::trace
