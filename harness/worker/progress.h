// Progress for whoever started this worker: one JSON object a line on PEAKBENCH_PROGRESS_FD.
#pragma once

#include "result/job.h"

namespace peakbench::worker {

// Never throws and never blocks the work for long: a reader that went away is forgotten.
void report(const result::Progress& progress);

// What the machine did, as the last line (result/job.h). May throw bad_alloc; the other one needs
// no memory.
void report_host_failure(const std::string& reason);
void report_host_failure_without_memory();

// Where the lines go; -1: nowhere. May be asked in a signal handler once it was asked before.
int progress_descriptor();

}  // namespace peakbench::worker
