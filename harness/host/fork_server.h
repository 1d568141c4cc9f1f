// The client's side of a process that has a program's libraries loaded and forks for each run of it
// (serve.h). Started at the first use, and again after it has ended.
#pragma once

#include <sys/types.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "host/process.h"
#include "host/supervisor.h"

namespace peakbench::process {

class ForkServer {
 public:
  struct Started {
    pid_t supervisor = -1;  // -1: none, start the program afresh
    std::string problem;    // to be printed, each once; it may come with a supervisor
  };

  // `arguments`: the command that serves; `environment`: what must be there before its libraries
  // are loaded. Starts nothing yet.
  ForkServer(std::vector<std::string> arguments, Environment environment);
  ~ForkServer();  // its children continue
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // A supervisor for a program with the arguments after spec.arguments[0], the variables of
  // spec.environment and its limits. The ends stay open here. From any thread, one after another.
  Started start(const ProcessSpec& spec, const SupervisorEnds& ends,
                const std::function<bool()>& cancelled);

  pid_t pid() const;  // of the server; -1: none runs

 private:
  enum class Answer { kStarted, kRefused, kGone };
  bool open_server(const std::function<bool()>& cancelled, std::string& problem);
  bool wait_for_hello(const std::function<bool()>& cancelled) const;
  Answer ask(const ProcessSpec& spec, const SupervisorEnds& ends, Started& started);
  int bury();
  std::string how_it_ended(int status) const;

  const std::vector<std::string> arguments_;
  const Environment environment_;
  mutable std::mutex mutex_;
  pid_t pid_ = -1;
  Fd socket_;
  Fd said_;  // a file in memory: what it printed
  int deaths_ = 0;
  bool given_up_ = false;
};

}  // namespace peakbench::process
