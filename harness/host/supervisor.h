// The process between us and a program that we run. It enforces the program's limits, stores its
// output, and ends everything that it started, whatever happens to us or the program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "host/process.h"

namespace peakbench::process {

// The ends of pipes and the open file that it works with.
struct SupervisorEnds {
  int progress_write = -1;                  // for the program
  int output_read = -1, output_write = -1;  // of the program's stdout and stderr
  int log = -1;                             // open for appending
  int control_read = -1;                    // a byte: end the program; its end: we are gone
  int report_write = -1;
};

// What it writes to its report pipe, once, followed by the program's last words.
struct SupervisorReport {
  enum class NotStarted : std::int32_t { kNo, kNoProcess, kNoProgram };
  NotStarted not_started = NotStarted::kNo;
  std::int32_t start_errno = 0;
  Stop stopped = Stop::kNone;
  std::int32_t wait_status = 0;
  std::int64_t peak_rss_bytes = 0, cpu_ns = 0, wall_ns = 0;
  std::int32_t log_errno = 0;
  std::int32_t left_running = 0;
};

// What the new process does once it is held: becomes the program, or is it. Returns only where it
// cannot, an errno.
using Body = std::function<int()>;

inline constexpr pid_t kNobody = 0;

// Forks this process into its own session; -1 with errno. The program ends when the writer of the
// control pipe ends, and when `parent` ends, if that is a process. `first`: called by the
// supervisor before anything else. The ends stay open here.
pid_t start_supervisor(const ProcessSpec& spec, const SupervisorEnds& ends, pid_t parent,
                       const Body& body, const std::function<void()>& first = {});

// Of this process.
void close_all_but(const std::vector<int>& descriptors);

}  // namespace peakbench::process
