// What one step makes the device do, counted while it runs.
#pragma once

#include <optional>

#include "record/work_counter.h"
#include "result/work.h"
#include "trace/trace.h"

namespace peakbench::worker {

class StepWorkCounter {
 public:
  // `device`: whose tensors count. `step`: the one that is counted; 0-based.
  StepWorkCounter(record::Recorder& recorder, c10::Device device, std::int64_t step);

  bool counts(std::int64_t step) const { return step == step_; }
  void begin() { counter_.begin(); }
  void end_part() { counter_.end_part(); }  // before another phase is said
  void end() { counted_ = counter_.end(); }

  // By the phases of the trace, as its events have them. nullopt: nothing was counted.
  std::optional<result::StepWork> work(const trace::Trace& trace) const;

 private:
  std::int64_t step_;
  record::WorkCounter counter_;
  std::optional<record::CountedWork> counted_;
};

}  // namespace peakbench::worker
