#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planning/plan.h"
#include "records/run.h"

namespace peakbench::launch {

// State of each case of a plan during a run, by its index in the plan.

struct CaseStates {
  // Of cases whose memory worker has ended, or that were decided without one.
  std::vector<std::optional<records::CaseResult>> results;
  std::set<std::size_t> pending;  // with measurements still to be made
  // Cases of the continued run whose promise could not be checked, because the machine failed the
  // reference. Their memory is measured again, and their rounds are kept.
  std::map<std::size_t, records::CaseResult> to_check;
  // Measured by the run that is continued, but with plugins of another build than today's: why they
  // are measured again.
  std::map<std::size_t, std::string> outdated;
  std::vector<bool> has_times;  // read once, as every turn asks for all
};

// The states after `run`; a new run has no measured cases. Takes the run's cases, all of which are
// in the plan. To be measured again: cases that the machine failed, and cases measured with other
// plugins than the current ones, or with unknown ones.
CaseStates take_over(const planning::Plan& plan, records::Run& run);

// Messages about outdated cases: a sentence for each reason.
std::vector<std::string> words_on_outdated(const CaseStates& states);

// What a memory worker found.
void take_memory(CaseStates& states, std::size_t index, records::CaseResult found);

// Those whose memory worker has ended, by index; null: not yet, or the machine failed it.
std::vector<const records::CaseResult*> measured_cases(const CaseStates& states);

// What is to be measured yet of a run, in the order in which it is. The same for a machine's own
// workers and for the tasks of a scheduler.

using Cases = std::vector<std::size_t>;  // by their indices in the plan

bool has_times(const CaseStates& states, const Cases& group);

// Groups of pending cases (execution_groups) in the order of running. Groups without timing come
// first.
std::vector<Cases> pending_groups(const planning::Plan& plan, const CaseStates& states);

Cases joined(const std::vector<Cases>& groups);

}  // namespace peakbench::launch
