// From how the processes of a group ended to the group's outcome: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "launch/runner.h"

namespace peakbench::launch {

// By Ctrl-C: the report says nothing of the case.
bool is_interrupted(const GroupReport& report);

// The rank that failed first; nullopt: none did. Those that were cut short did not fail.
std::optional<std::size_t> first_failure(const std::vector<WorkerReport>& ranks);

// What the group found, as one worker's result: the first failure's, whose reason says which of
// several ranks it was; else that of rank 0, as all do the same steps, but with the memory of
// the largest rank, and the verdict of the one that is most in doubt.
result::WorkerResult group_outcome(const std::vector<WorkerReport>& ranks);

}  // namespace peakbench::launch
