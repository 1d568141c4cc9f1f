#pragma once

#include <cstdint>
#include <string>

namespace peakbench::worker {

// A function's name from a library's own table of symbols, which has those that are not exported: a
// plugin exports its entry alone.

// Mangled; null where the file has no such table (stripped) or no function there. `offset`: from
// where the library is loaded. Allocates nothing and takes no lock, for a signal handler; leaves
// the file mapped, as the process ends.
const char* symbol_of(const char* path, std::uintptr_t offset);

// Signals that end the process without an exception: whose code it was, and how it came there, for
// the log and for whoever started the worker.

// For SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, where nobody listens yet: the handler writes the
// plugin, the call and the place to the progress (records/job.h), and with a backtrace to stderr;
// then the signal ends the process, as without it. On a stack of its own for the thread that calls
// this, so that an overflow is told, too.
void prepare_for_fatal_signals();

// A plugin's library that was opened: its frames are told from LibTorch's. A few hundred at most.
void note_plugin_library(const std::string& path);

}  // namespace peakbench::worker
