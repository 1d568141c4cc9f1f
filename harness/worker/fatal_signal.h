#pragma once

#include <cstdint>
#include <string>

namespace peakbench::worker {

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
