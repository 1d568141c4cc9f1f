// Signals that are meant for the program which we run. Signal handlers need process-wide state; all
// of it is in this file's source.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace peakbench::emulator {

// Until there is a program, SIGINT, SIGTERM, SIGHUP and SIGQUIT are noted, for who prepares it to
// end what it has begun. Then SIGTERM and SIGHUP reach the program. SIGINT and SIGQUIT from a
// terminal reach it and all that it started by themselves; those that somebody sent to us alone
// reach the same processes. One object at a time.
class ProgramSignals {
 public:
  ProgramSignals();
  ~ProgramSignals();
  ProgramSignals(const ProgramSignals&) = delete;
  ProgramSignals& operator=(const ProgramSignals&) = delete;

  // The first; 0: none.
  int noted() const;
  // One that was noted reaches it now.
  void pass_on_to(pid_t program) const;
  // Whenever waiting for the program was interrupted: what came for it reaches what it started.
  void pass_on_to_descendants(pid_t program) const;
  // The first that came while there was a program, a terminal's too; 0: none.
  int came_for_program() const;
  // As they were before: in the program itself, before it starts; here, when it has ended.
  void restore() const;

 private:
  struct sigaction before_[4];
};

// Says that the program was not started, and returns the exit code for that.
int ended_before_the_program(int signal);

}  // namespace peakbench::emulator
