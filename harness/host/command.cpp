#include "host/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace peakbench::process {

namespace fs = std::filesystem;

std::optional<fs::path> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return access(word.c_str(), F_OK) == 0 ? std::optional<fs::path>(word) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, ignored))
      return candidate;
  }
  return std::nullopt;
}

std::vector<std::string> python_module(const std::string& python, const std::string& module) {
  // `sys` is built in. Everything else is found on sys.path.
  constexpr const char* kRunModule =
      "import sys\n"
      "if not getattr(sys.flags, 'safe_path', False): del sys.path[0]\n"
      "import runpy\n"
      "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)\n";
  return {python, "-c", kRunModule, module};
}

std::string become(std::vector<std::string> words) {
  const auto argv = pointers(words);
  execvp(argv[0], argv.data());
  return std::strerror(errno);
}

namespace {

using Clock = std::chrono::steady_clock;

// An errno; 0: it runs.
int start_command(const Command& command, const Pipe& out, const Pipe& err, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGUSR2})
    sigaddset(&signals, one);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  auto arguments = command.arguments;
  auto variables = merged_environment({}, command.without);
  const auto argv = pointers(arguments), envp = pointers(variables);
  const int problem = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return problem;
}

// Held to its limits until it has ended.
class RunningCommand {
 public:
  RunningCommand(const Command& command, pid_t pid, Pipe& out, Pipe& err, CommandSaid& said)
      : command_(command), pid_(pid), out_(out), err_(err), said_(said) {
    for (Pipe* pipe : {&out_, &err_}) fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  }

  void watch() {
    const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));  // -1: poll does without
    // What it printed before its end is in the pipes when the end is seen, and is read once more.
    for (;;) {
      const bool ended = has_ended_itself();
      read_some(out_, said_.out);
      read_some(err_, said_.err);
      if (ended) break;
      look();
      constexpr int kMs = 20;
      std::array<pollfd, 3> wanted{pollfd{out_.read.get(), POLLIN, 0},
                                   pollfd{err_.read.get(), POLLIN, 0},
                                   pollfd{pidfd.get(), POLLIN, 0}};
      poll(wanted.data(), wanted.size(), kMs);
    }
    if (said_.stopped != Stop::kNone) send(SIGKILL);  // who did not listen, of its group
  }

  int exit_code() const {
    int status = 0;
    TEMP_FAILURE_RETRY(waitpid(pid_, &status, 0));
    return process::exit_code(status);
  }

 private:
  // It stays a zombie, so that its group's number stays taken.
  bool has_ended_itself() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

  // A pipe's worth and more; what is beyond the limit is dropped.
  void read_some(Pipe& pipe, std::string& text) {
    std::array<char, 8192> bytes;  // a thread may have a stack of 128 KiB in all
    for (int portion = 0; pipe.read.is_open() && portion < 16; ++portion) {
      const auto count = TEMP_FAILURE_RETRY(::read(pipe.read.get(), bytes.data(), bytes.size()));
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        pipe.read.reset();
        return;
      }
      const auto kept = std::min(static_cast<std::size_t>(count),
                                 command_.most_output - said_.out.size() - said_.err.size());
      text.append(bytes.data(), kept);
      too_much_ |= kept < static_cast<std::size_t>(count);
    }
  }

  void look() {
    const auto now = Clock::now();
    if (said_.stopped != Stop::kNone) {
      if (now - stopped_at_ > command_.grace) send(SIGKILL);
    } else if (command_.cancelled && command_.cancelled()) {
      stop(Stop::kInterrupt, now);
    } else if (now - start_ > command_.patience) {
      stop(Stop::kTimeout, now);
    } else if (too_much_) {
      stop(Stop::kOutput, now);
    }
  }

  void stop(Stop why, Clock::time_point now) {
    said_.stopped = why;
    stopped_at_ = now;
    send(command_.grace.count() > 0 ? SIGTERM : SIGKILL);
    send(SIGCONT);  // who is stopped hears nothing
  }
  void send(int number) const { kill(-pid_, number); }

  const Command& command_;
  pid_t pid_;
  Pipe &out_, &err_;
  CommandSaid& said_;
  Clock::time_point start_ = Clock::now(), stopped_at_;
  bool too_much_ = false;
};

}  // namespace

CommandSaid ask_command(const Command& command) {
  CommandSaid said;
  Pipe out, err;
  pid_t pid = 0;
  if (!out.open() || !err.open()) {
    said.start_error = std::strerror(errno);
    return said;
  }
  if (const int problem = start_command(command, out, err, pid); problem != 0) {
    said.start_error = std::strerror(problem);
    return said;
  }
  out.write.reset();
  err.write.reset();
  RunningCommand running(command, pid, out, err, said);
  running.watch();
  said.exit_code = running.exit_code();
  return said;
}

}  // namespace peakbench::process
