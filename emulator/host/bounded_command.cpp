#include "host/bounded_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

namespace peakbench::emulator {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void become(const std::vector<std::string>& command, int output, ErrorOutput errors) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nowhere, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors == ErrorOutput::kept ? output : nowhere, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(words[0], words.data());
  _exit(127);
}

// Until everybody has closed the other end; false where the time is over before.
bool read_until_closed(int end, Clock::time_point deadline, std::string& text) {
  std::array<char, 4096> room;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{end, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
    const auto got = read(end, room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(room.data(), static_cast<std::size_t>(got));
  }
}

// A compiler's driver ends what it started when it is asked to end.
void end(pid_t child) {
  constexpr int kTenthsOfASecond = 20;
  kill(child, SIGTERM);
  for (int i = 0; i < kTenthsOfASecond; ++i) {
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == child)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(child, SIGKILL);
}

int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

CommandResult run_bounded(const std::vector<std::string>& command, std::chrono::seconds longest,
                          ErrorOutput errors) {
  CommandResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t child = fork();
  if (child == 0) become(command, ends[1], errors);
  close(ends[1]);
  if (child > 0) {
    result.too_long = !read_until_closed(ends[0], Clock::now() + longest, result.text);
    if (result.too_long) end(child);
    result.ended_well = status_of(child) == 0 && !result.too_long;
  }
  close(ends[0]);
  return result;
}

}  // namespace peakbench::emulator
