#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace peakbench::process {

// The variables of a program that we start.

// Variables to set, replacing equal names.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Our own, with those added: NAME=VALUE. `without`: how names of ours begin that are left out.
std::vector<std::string> merged_environment(const Environment& added,
                                            const std::vector<std::string>& without = {});

// A list as execve takes it: to the texts, which must outlive it, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts);

// How a program ended, as the exit code that a shell would show for it.

inline int ended_by(int signal) { return 128 + signal; }

// `wait_status`: as waitpid gives it.
inline int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? ended_by(WTERMSIG(wait_status)) : WEXITSTATUS(wait_status);
}

// A pipe whose ends close with their owner.

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

struct Pipe {
  // False with errno. A program that is started gets neither end.
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
  Fd read, write;
};

// Runs one program to its end, and all that it starts, within a time and a memory limit.

class ForkServer;

struct ProcessSpec {
  std::vector<std::string> arguments;     // [0]: path of the program
  Environment environment;                // added to our own, replacing equal names
  std::string log_path;                   // stdout and stderr are appended: see worker_output.h
  std::chrono::milliseconds timeout{0};   // 0: none
  std::chrono::milliseconds grace{3000};  // from SIGTERM to SIGKILL
  std::int64_t rss_limit_bytes = 0;  // resident memory, its children's too, that ends it; 0: none
};

// Why we ended it; for what it printed: a command (command.h) alone.
enum class Stop { kNone, kTimeout, kMemory, kInterrupt, kOutput };

struct ProcessEnd {
  std::string start_error;  // why it could not be started; nothing else holds then
  Stop stopped = Stop::kNone;
  int exit_code = 0;
  int signal = 0;                   // that ended it; 0: it exited
  std::int64_t peak_rss_bytes = 0;  // of the program itself
  std::int64_t cpu_ns = 0;          // user and system, of all that it started too
  std::int64_t wall_ns = 0;
  std::string last_words;      // the end of what it printed, whatever became of the log
  std::string log_error;       // why the log is incomplete; empty: it is complete, within
                               // worker_output.h's limits
  int left_running = 0;        // processes that it started and that could not be killed
  std::string server_problem;  // what was wrong with the fork server, where there was one
};

// The descriptor of the program's that PEAKBENCH_PROGRESS_FD names. Writing to it never blocks:
// what does not fit is refused (EAGAIN).
inline constexpr int kProgressDescriptor = 3;

// `added` and PEAKBENCH_PROGRESS_FD.
Environment with_progress(Environment added);

// Runs a program until it ends. Everything that it started ends with it, also in other sessions. A
// process between us and the program (supervisor.h) ensures this even if we are killed. If memory
// runs out, the kernel ends the program first.
//
// `on_line` receives lines that the program writes on the descriptor named by
// PEAKBENCH_PROGRESS_FD, in portions. Of more than about a hundred a second it receives only some,
// and the newest. `cancelled` is asked every few milliseconds.
//
// `server`: forks the program if it can; otherwise, and with null, the program is executed. May be
// called from several threads: between fork and exec, a child takes only locks of glibc's
// allocator, which glibc prepares for it.
ProcessEnd run_process(const ProcessSpec& spec,
                       const std::function<void(const std::string&)>& on_line,
                       const std::function<bool()>& cancelled, ForkServer* server = nullptr);

}  // namespace peakbench::process
