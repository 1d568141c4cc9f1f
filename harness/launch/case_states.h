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

// What is known of each case of a plan while a run goes on, by its index in the plan.

struct CaseStates {
  // Of cases whose memory worker has ended, or that were decided without one.
  std::vector<std::optional<records::CaseResult>> results;
  std::set<std::size_t> pending;  // of which something is to be measured yet
  // Measured by the run that is continued, but with a promise that could not be checked because the
  // machine failed the reference: their memory is measured again, and the rounds that they have
  // stay.
  std::map<std::size_t, records::CaseResult> to_check;
  // Measured by the run that is continued, but with plugins of another build than today's: why they
  // are measured again.
  std::map<std::size_t, std::string> outdated;
  std::vector<bool> has_times;  // read once, as every turn asks for all
};

// As `run` left them, none measured where it is new. Takes the run's cases, all of which are the
// plan's. What the machine failed is to be measured again, and so is what was measured with other
// plugins than lie on the disk now, or that does not say with which.
CaseStates take_over(const planning::Plan& plan, records::Run& run);

// What people are told of those that are outdated: a sentence for each reason.
std::vector<std::string> words_on_outdated(const CaseStates& states);

// What a memory worker found.
void take_memory(CaseStates& states, std::size_t index, records::CaseResult found);

// Those whose memory worker has ended, by index; null: not yet, or the machine failed it.
std::vector<const records::CaseResult*> measured_cases(const CaseStates& states);

// What is to be measured yet of a run, in the order in which it is. The same for a machine's own
// workers and for the tasks of a scheduler.

using Cases = std::vector<std::size_t>;  // by their indices in the plan

bool has_times(const CaseStates& states, const Cases& group);

// In the order they run: of what is compared (execution_groups), the cases that are pending. First
// those of which nothing is timed.
std::vector<Cases> pending_groups(const planning::Plan& plan, const CaseStates& states);

Cases joined(const std::vector<Cases>& groups);

}  // namespace peakbench::launch
