// The server's side: a process that has loaded what its program takes long to load, and that forks
// one of itself for each run of it.
//
//   peakbench ------ socket ------ server            one thread, libraries loaded, nothing used
//       \                            | fork
//        \---- report, control ---- supervisor       one for each run: supervisor.h, as ever
//                                    | fork
//                                   program          what would have been exec'd runs here
//
// So each run has a process and a supervisor of its own, as where they are started afresh, and
// neither needs the server once it runs: the pipes lead from the supervisor to who asked. What a
// server that dies took with it is the time to load another (fork_server.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace peakbench::process {

struct Service {
  // Why this process must not be forked, as what it has used cannot be used again by a child;
  // empty: it may be. That it has one thread is looked after here.
  std::function<std::string()> objection;
  // What a run does, in a process of its own; its exit code. `arguments`: without the program.
  std::function<int(const std::vector<std::string>& arguments)> run;
};

// Serves whoever started this process, on kServerDescriptor, until they are gone.
[[noreturn]] void serve(const Service& service);

}  // namespace peakbench::process
