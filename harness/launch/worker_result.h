// The file that a worker leaves as its result. A plugin shares the worker's process and may have
// put anything there.
#pragma once

#include <cstddef>
#include <string>

#include "launch/outcome.h"

namespace peakbench::launch {

// More than a million steps' times and losses take.
inline constexpr std::size_t kMostResultBytes = std::size_t{256} << 20;

// Fills `written`, its texts bounded, or `read_problem`; neither where there is nothing at the
// path. Never waits and never throws: pipes, folders, links, sockets and files that are too large
// are problems.
void read_result(const std::string& path, Evidence& evidence);

}  // namespace peakbench::launch
