#pragma once

#include <cstdint>
#include <string>

namespace peakbench::worker {

// Signals that end the process without an exception: reports whose code it was, and its source
// location, to the log and to the process that started the worker.

// Installs handlers of SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, unless there are others. A
// handler writes the plugin, the call and the source location to the progress (records/job.h), and
// with a backtrace to stderr. Then the signal ends the process as usual. The calling thread gets a
// separate signal stack, so that a stack overflow is reported, too.
void prepare_for_fatal_signals();

// Records a plugin's opened library, to distinguish its frames from LibTorch's. A few hundred at
// most.
void note_plugin_library(const std::string& path);

}  // namespace peakbench::worker
