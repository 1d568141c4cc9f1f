#include "process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "process/process.h"

namespace peakbench::process {
namespace {

using CommandClock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = std::size_t{64} << 20;

class CommandPipe {
 public:
  CommandPipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  CommandPipe(const CommandPipe&) = delete;
  CommandPipe& operator=(const CommandPipe&) = delete;
  ~CommandPipe() {
    close_end(0);
    close_end(1);
  }
  bool is_open() const { return ends_[0] >= 0; }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() { close_end(1); }
  void close_read() { close_end(0); }

 private:
  void close_end(std::size_t which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

std::vector<std::string> environment_without(const std::vector<std::string>& prefixes) {
  std::vector<std::string> kept;
  for (auto& variable : merged_environment({})) {
    const bool left_out = std::ranges::any_of(
        prefixes, [&](const std::string& prefix) { return variable.starts_with(prefix); });
    if (!left_out) kept.push_back(std::move(variable));
  }
  return kept;
}

// An errno; 0: it runs.
int start_command(std::vector<std::string> arguments, const std::vector<std::string>& without,
                  const CommandPipe& out, const CommandPipe& err, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR2}) sigaddset(&signals, one);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  auto variables = environment_without(without);
  const auto argv = pointers(arguments), envp = pointers(variables);
  const int problem = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return problem;
}

// False at its end.
bool take(CommandPipe& pipe, std::string& text) {
  std::array<char, 65536> bytes;
  const auto count = read(pipe.read_end(), bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  text.append(bytes.data(), static_cast<std::size_t>(count));
  return text.size() <= kMostOutput;
}

// True: both ended in time.
bool gather_output(CommandPipe& out, CommandPipe& err, CommandSaid& said,
                   CommandClock::time_point until) {
  while (out.is_open() || err.is_open()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - CommandClock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> ends{pollfd{out.read_end(), POLLIN, 0},
                               pollfd{err.read_end(), POLLIN, 0}};
    if (poll(ends.data(), ends.size(), static_cast<int>(std::min<long>(left, 1000))) < 0 &&
        errno != EINTR)
      return false;
    if (ends[0].revents != 0 && !take(out, said.out)) out.close_read();
    if (ends[1].revents != 0 && !take(err, said.err)) err.close_read();
  }
  return true;
}

int wait_for_command(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

CommandSaid ask_command(const std::vector<std::string>& arguments,
                        const std::vector<std::string>& without,
                        std::chrono::milliseconds patience) {
  CommandSaid said;
  CommandPipe out, err;
  pid_t pid = 0;
  if (!out.is_open() || !err.is_open()) {
    said.start_error = std::strerror(EMFILE);
    return said;
  }
  if (const int problem = start_command(arguments, without, out, err, pid); problem != 0) {
    said.start_error = std::strerror(problem);
    return said;
  }
  out.close_write();
  err.close_write();
  said.timed_out = !gather_output(out, err, said, CommandClock::now() + patience);
  if (said.timed_out) kill(-pid, SIGKILL);
  said.exit_code = wait_for_command(pid);
  return said;
}

std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const auto file = folder + "/" + program; access(file.c_str(), X_OK) == 0) return file;
  return "";
}

}  // namespace peakbench::process
