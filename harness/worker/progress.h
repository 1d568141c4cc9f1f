// Progress for whoever started this worker: one JSON object a line on PEAKBENCH_PROGRESS_FD.
#pragma once

#include "result/job.h"

namespace peakbench::worker {

// Never throws and never blocks the work for long: a reader that went away is forgotten.
void report(const result::Progress& progress);

}  // namespace peakbench::worker
