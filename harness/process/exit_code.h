// How a program ended, as the exit code that a shell would show for it.
#pragma once

#include <sys/wait.h>

namespace peakbench::process {

inline int ended_by(int signal) { return 128 + signal; }

// `wait_status`: as waitpid gives it.
inline int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? ended_by(WTERMSIG(wait_status)) : WEXITSTATUS(wait_status);
}

}  // namespace peakbench::process
