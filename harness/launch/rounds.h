#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/case_states.h"
#include "planning/plan.h"
#include "records/case.h"
#include "records/job.h"

namespace peakbench::launch {

// In which order the cases that are compared take turns at being timed. Pure.
//
// A round times every case of a group once, each in a process of its own. What the machine does
// over the minutes meets all cases of a round alike, so what is compared is the ratio within a
// round (reports/analysis/timing.h).

// The places of `count` cases, 0 to count - 1, in the order they run in a round, from 0 on. Every
// second round is its predecessor backwards, which cancels a drift; every pair begins one case
// further. So over 2 * count rounds each case has had each place twice.
std::vector<std::size_t> round_order(std::size_t count, std::int64_t round);

// The rounds of `rounds` that a case has not been timed in, in order.
std::vector<std::int64_t> missing_rounds(const records::CaseResult& result, std::int64_t rounds);

// The rounds of a case as one throughput.

// Adds what one throughput worker `found` in a round. The statistics are over all steps of all
// rounds, in the order of the rounds; those of a single round stay the worker's own.
void add_round(std::optional<records::Throughput>& all, const records::Throughput& found,
               records::TimingRound round, const records::CaseSpec& spec);

// A worker that is about to run, and what is left to do.

// `place` counts the cases in the order they run, from 0.
struct Turn {
  std::size_t place = 0;
  std::string case_id;
  records::JobMode mode = records::JobMode::kMemory;
  std::int64_t round = 0, rounds = 0;  // throughput: 0-based, of so many
  std::size_t group_size = 0;          // throughput: cases that take turns in a round
  // Workers of each kind still to run, this one included, should all go well.
  std::size_t memory_workers = 0, throughput_workers = 0;
};

// Of the case with this index; its place, round and group are for the caller to fill in.
Turn turn_of(const planning::Plan& plan, const CaseStates& states, std::size_t index,
             records::JobMode mode);

}  // namespace peakbench::launch
