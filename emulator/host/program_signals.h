// Signals that are meant for the program which we run. Signal handlers need process-wide state; all
// of it is in this file's source.
#pragma once

#include <signal.h>
#include <sys/types.h>

namespace peakbench::emulator {

// Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT. Before the program has started, they are noted, so
// that its preparation can stop. Afterwards they are passed on:
//
// - SIGTERM and SIGHUP: to the program.
// - SIGINT and SIGQUIT: to the program and everything it started. From a terminal they reach these
//   processes anyway; those sent to us alone are sent to the same processes.
//
// One object at a time.
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
