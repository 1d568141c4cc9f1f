#pragma once

#include <cstdint>
#include <string>

#include "records/job.h"
#include "trace/trace.h"

namespace peakbench::worker {

// Progress for the process that started this worker: one JSON object a line on
// PEAKBENCH_PROGRESS_FD.

// Never throws and never blocks the work for long: a reader that went away is forgotten.
void report(const records::Progress& progress);

// What the machine did, as the last line (records/job.h). May throw bad_alloc; the other one needs
// no memory.
void report_host_failure(const std::string& reason);
void report_host_failure_without_memory();

// The descriptor of the lines; -1: none. After the first call it may be called in a signal handler.
int progress_descriptor();

// Where the worker is in its job, for messages.

// Cheap enough for a timed step. `step` is 0-based, trace::kNone before the first one; `steps` is
// how many there are, warm-up included.
void set_place(trace::Phase phase, std::int64_t step, std::int64_t steps);

// The same as numbers, for a signal handler.
struct Place {
  trace::Phase phase = trace::Phase::kBuild;
  std::int64_t step = trace::kNone, steps = 0;
};
Place place_now();

// A strategy changed this module of the model, by its path. Failures there mention it.
void note_changed_module(const std::string& module, const std::string& strategy);

// Where the code was that an exception left, as far as it is known. Replaces what was noted before.
void note_failure(const std::string& module, const std::string& op);

// "step 2 of 3, backward, module heads.head, operator aten::addmm", and "module heads.head (changed
// by lora)" if a strategy changed it. Leaves out unknown parts; empty before the first step. To be
// called after a failure.
std::string place_in_words();

}  // namespace peakbench::worker
