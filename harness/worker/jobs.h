// The two kinds of job. Each runs in a process of its own; a case's outcome is a value, whatever
// happened.
#pragma once

#include <optional>

#include "result/job.h"

namespace peakbench::worker {

// Every allocation traced over `steps` steps after build; writes the trace and fills the memory
// record. Where it throws, `until_failure` has what an emulated card was asked for until then.
result::WorkerResult run_memory_job(const result::Job& job,
                                    std::optional<result::Emulation>& until_failure);

// No tracer is ever installed: each step timed by itself after `warmup` steps.
result::WorkerResult run_throughput_job(const result::Job& job);

}  // namespace peakbench::worker
