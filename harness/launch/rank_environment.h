// The variables by which a process learns that it is one of several.
#pragma once

#include <cstddef>

#include "process/process.h"

namespace peakbench::launch {

// What PyTorch's launcher sets for processes on one machine (_start_workers in
// torch/distributed/elastic/agent/server/local_elastic_agent.py), for `env://` to find; nothing for
// one that is alone. `port`: where they meet.
process::Environment rank_environment(std::size_t rank, std::size_t ranks, int port);

// Of this machine, and nobody's at the moment. Throws HostError.
int free_port();

}  // namespace peakbench::launch
