// A worker that is about to run, and what is left to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "launch/case_states.h"
#include "plan/plan.h"
#include "result/job.h"

namespace peakbench::launch {

// `place` counts the cases in the order they run, from 0.
struct Turn {
  std::size_t place = 0;
  std::string case_id;
  result::JobMode mode = result::JobMode::kMemory;
  std::int64_t round = 0, rounds = 0;  // throughput: 0-based, of so many
  std::size_t group_size = 0;          // throughput: cases that take turns in a round
  // Workers of each kind still to run, this one included, should all go well.
  std::size_t memory_workers = 0, throughput_workers = 0;
};

// Of the case with this index; its place, round and group are for the caller to fill in.
Turn turn_of(const plan::Plan& plan, const CaseStates& states, std::size_t index,
             result::JobMode mode);

}  // namespace peakbench::launch
