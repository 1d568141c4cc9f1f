// The worker of a program's case: runs it traced, in a process of its own, so that its folder, its
// variables and its signals are nobody else's.
#pragma once

#include <string>

namespace peakbench::program {

// Reads the job (result/job.h), runs its program, writes the traces beside `trace_path` and the
// result, and exits 0 whenever it wrote one. Standard output and error are the program's own.
int run_case_worker(const std::string& job_path);

}  // namespace peakbench::program
