// The two kinds of job. Each runs in a process of its own; a case's outcome is a value, whatever
// happened.
#pragma once

#include <optional>

#include "records/job.h"

namespace peakbench::worker {

// Every allocation traced over `steps` steps after build; writes the trace and fills the memory
// record. Where it throws, `until_failure` has what an emulated card was asked for until then.
records::WorkerResult run_memory_job(const records::Job& job,
                                     std::optional<records::Emulation>& until_failure);

// No tracer is ever installed: each step timed by itself after `warmup` steps.
records::WorkerResult run_throughput_job(const records::Job& job);

}  // namespace peakbench::worker
