// Ctrl-C. The first one asks the run to end cleanly: the worker is stopped, results and a report
// are written. The second ends at once, and a worker with it (supervisor.h). Signal handlers need
// process-wide state; all of it is in this file's source.
#pragma once

namespace peakbench::launch {

// While it lives, SIGINT, SIGTERM and SIGHUP are noted instead of ending the process, and so is
// SIGUSR2, by which a scheduler says that the time is nearly up. One at a time.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

// True from the first signal on, until the scope ends.
bool interrupted();

// As such a signal would, for another reason to stop.
void interrupt_as(int signal);

// The first signal; 0: none.
int interrupted_by();

// For other threads than the one that writes files and blocks signals until a file has its name.
void leave_signals_to_others();

}  // namespace peakbench::launch
