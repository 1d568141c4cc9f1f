// Runs one program to its end in a process group of its own, within a time and a memory limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace peakbench::launch {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct ProcessSpec {
  std::vector<std::string> arguments;     // [0]: path of the program
  Environment environment;                // added to our own, replacing equal names
  std::string log_path;                   // stdout and stderr are appended to it
  std::chrono::milliseconds timeout{0};   // 0: none
  std::chrono::milliseconds grace{3000};  // from SIGTERM to SIGKILL
  std::int64_t rss_limit_bytes = 0;       // resident memory that ends it; 0: none
};

enum class Stop { kNone, kTimeout, kMemory, kInterrupt };  // why we ended it

struct ProcessEnd {
  std::string start_error;  // why it could not be started; nothing else holds then
  Stop stopped = Stop::kNone;
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: it exited
  std::int64_t peak_rss_bytes = 0;
  std::int64_t cpu_ns = 0;  // user and system, its own children included
  std::int64_t wall_ns = 0;
};

// Blocks until the program has ended; whatever is left of its group is killed then. `on_line` gets
// each line that the program writes on the descriptor named by PEAKBENCH_PROGRESS_FD. `cancelled`
// is asked every few milliseconds. The program dies with us, and is the first that the kernel ends
// when memory runs out. Call from one thread at a time.
ProcessEnd run_process(const ProcessSpec& spec,
                       const std::function<void(const std::string&)>& on_line,
                       const std::function<bool()>& cancelled);

}  // namespace peakbench::launch
