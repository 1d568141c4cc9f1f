#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "launch/case.h"
#include "launch/runner.h"

namespace peakbench::launch {

// From how the processes of a group ended to the group's outcome: pure functions.

// By Ctrl-C: the report says nothing of the case.
bool is_interrupted(const GroupReport& report);

// The rank that failed first; nullopt: none did. Those that were cut short did not fail.
std::optional<std::size_t> first_failure(const std::vector<WorkerReport>& ranks);

// The result of the group as that of one worker. If a rank failed: the first failure, whose reason
// names the rank. Otherwise rank 0's result, as all ranks do the same steps, with the memory of the
// largest rank and the most doubtful verdict.
records::WorkerResult group_outcome(const std::vector<WorkerReport>& ranks);

// Starts the worker group of a case, in the environment that its device needs.

using Prepare = std::function<void(GroupOrder&)>;

// A group whose files cannot be made is an outcome of its case as one that cannot be started is.
// `prepare` changes the order before it starts.
GroupReport run_group(const CaseOrder& order, records::JobMode mode, Runner& runner,
                      const Listener& listener, const Prepare& prepare = {},
                      const Emulated& how = {});

// Runs the memory workers. On an emulated card first without values, as most cases read nothing
// from their card. Then again with values if the host read unknown ones.
GroupReport run_memory(const CaseOrder& order, Runner& runner, const Listener& listener,
                       const Prepare& prepare, Emulated how = {});

}  // namespace peakbench::launch
