// The worker started without a case, for `doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "process/process.h"

namespace peakbench::inventory {

struct WorkerSaid {
  std::string text;  // all that it printed
  std::string end;   // for people: its last lines, or why it could not be started
  std::int64_t wall_ns = 0;
};

// Within a minute.
WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const process::Environment& environment);

}  // namespace peakbench::inventory
