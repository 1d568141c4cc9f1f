#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/ledger.h"
#include "recording/work_counter.h"
#include "records/case.h"
#include "records/job.h"
#include "records/verdict.h"
#include "trace/trace.h"

namespace peakbench::worker {

// What the emulated card has counted of this process so far.

// nullptr if the process does not use our stub libraries.
const emulator::Ledger* own_ledger();

// What one step makes the device do, counted while it runs.

class StepWorkCounter {
 public:
  // `device`: whose tensors count. `step`: the one that is counted; 0-based.
  StepWorkCounter(recording::Recorder& recorder, c10::Device device, std::int64_t step);

  bool counts(std::int64_t step) const { return step == step_; }
  void begin() { counter_.begin(); }
  void end_part() { counter_.end_part(); }  // before another phase is reported
  void end() { counted_ = counter_.end(); }

  // By the phases of the trace, as its events have them. nullopt: nothing was counted.
  std::optional<records::StepWork> work(const trace::Trace& trace) const;

 private:
  std::int64_t step_;
  recording::WorkCounter counter_;
  std::optional<recording::CountedWork> counted_;
};

// How far this process's figures can be relied on, by what the emulated card was asked for.

enum class Ended { kWell, kBadly };

// Call at the end of the steps, or at the failure that this peak belongs to. Absent if the process
// does not use the stub libraries.
std::optional<records::Verdict> verdict(const records::Job& job, std::int64_t peak_allocated_bytes,
                                        Ended ended = Ended::kWell);

// What the reason of a failure says where another value may have led elsewhere; empty where all
// that decides was known.
std::string doubt_of_failure(const records::Verdict& verdict);

// Allocations on the host by the library that computes values are not counted as the case's.
void leave_out_own_work_of_values();

}  // namespace peakbench::worker
