#include "launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>

#include "launch/interrupt.h"
#include "result/host_limits.h"

namespace peakbench::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProgressFd = 3;  // in the child
constexpr int kPollMs = 10;
constexpr auto kMemoryWatch = std::chrono::milliseconds(20);

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

bool open_pipe(Fd& read_end, Fd& write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  read_end.reset(ends[0]);
  write_end.reset(ends[1]);
  return true;
}

std::vector<std::string> merged_environment(const Environment& added) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
  all["PEAKBENCH_PROGRESS_FD"] = std::to_string(kProgressFd);
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// What the child does between fork and exec: only async-signal-safe calls, everything is prepared
// before.
[[noreturn]] void become(char** arguments, char** environment, int log, int progress, int error,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before we asked to die with it
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    [[maybe_unused]] const auto written = write(score, "1000", 4);
    close(score);
  }
  // Descriptors first out of the way of the numbers they are to have.
  progress = fcntl(progress, F_DUPFD_CLOEXEC, 10);
  error = fcntl(error, F_DUPFD_CLOEXEC, 10);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  dup2(progress, kProgressFd);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(number, SIG_DFL);
  execve(arguments[0], arguments, environment);
  const int problem = errno;
  [[maybe_unused]] const auto written = write(error, &problem, sizeof problem);
  _exit(127);
}

// Splits what arrives on the progress pipe into lines.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) { fcntl(fd, F_SETFL, O_NONBLOCK); }

  // False at the end of the pipe.
  bool read_available(const std::function<void(const std::string&)>& on_line) {
    char chunk[4096];
    for (;;) {
      const ssize_t count = read(fd_, chunk, sizeof chunk);
      if (count == 0) return false;
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      rest_.append(chunk, static_cast<std::size_t>(count));
      for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
        on_line(rest_.substr(0, end));
        rest_.erase(0, end + 1);
      }
      if (rest_.size() > 65536) rest_.clear();  // not our protocol; do not gather it
    }
  }

 private:
  int fd_;
  std::string rest_;
};

std::int64_t resident_bytes(pid_t pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Has it ended? Leaves it as a zombie, so that its group's number stays taken until the group is
// killed.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// Decides when to end a process, and ends it: first asking, then without asking.
class Watch {
 public:
  Watch(const ProcessSpec& spec, pid_t pid) : spec_(spec), pid_(pid), start_(Clock::now()) {}

  void look(bool cancelled) {
    const auto now = Clock::now();
    if (stopped_ == Stop::kNone) {
      if (cancelled) {
        stop(Stop::kInterrupt, SIGTERM);
      } else if (spec_.timeout.count() > 0 && now - start_ > spec_.timeout) {
        stop(Stop::kTimeout, SIGTERM);
      } else if (over_memory(now)) {
        stop(Stop::kMemory, SIGKILL);
      }
    } else if (now - stopped_at_ > spec_.grace) {
      kill(-pid_, SIGKILL);
    }
  }
  Stop stopped() const { return stopped_; }
  std::int64_t wall_ns() const { return (Clock::now() - start_) / std::chrono::nanoseconds(1); }

 private:
  bool over_memory(Clock::time_point now) {
    if (spec_.rss_limit_bytes <= 0 || now - looked_at_memory_ < kMemoryWatch) return false;
    looked_at_memory_ = now;
    return resident_bytes(pid_) > spec_.rss_limit_bytes;
  }
  void stop(Stop why, int number) {
    stopped_ = why;
    stopped_at_ = Clock::now();
    kill(-pid_, number);
  }

  const ProcessSpec& spec_;
  pid_t pid_;
  Clock::time_point start_, stopped_at_, looked_at_memory_;
  Stop stopped_ = Stop::kNone;
};

void wait_for_end(pid_t pid, Watch& watch, int pipe,
                  const std::function<void(const std::string&)>& on_line,
                  const std::function<bool()>& cancelled) {
  Lines lines(pipe);
  bool open = true;
  while (!has_ended(pid)) {
    pollfd wanted{open ? pipe : -1, POLLIN, 0};
    if (poll(&wanted, 1, kPollMs) > 0) open = lines.read_available(on_line);
    watch.look(cancelled());
  }
  kill(-pid, SIGKILL);  // what it started and left behind
  if (open) lines.read_available(on_line);
}

std::int64_t nanoseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::int64_t>(time.tv_usec) * 1000;
}

std::optional<int> exec_error(int fd) {
  int problem = 0;
  ssize_t count = 0;
  do {
    count = read(fd, &problem, sizeof problem);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof problem) ? std::optional(problem) : std::nullopt;
}

}  // namespace

ProcessEnd run_process(const ProcessSpec& spec,
                       const std::function<void(const std::string&)>& on_line,
                       const std::function<bool()>& cancelled) {
  ProcessEnd end;
  Fd log(open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.get() < 0) {
    end.start_error =
        fmt::format("{}: cannot write: {}", spec.log_path, result::host_error_text(errno));
    return end;
  }
  Fd progress_read, progress_write, error_read, error_write;
  if (!open_pipe(progress_read, progress_write) || !open_pipe(error_read, error_write)) {
    end.start_error = fmt::format("cannot make a pipe: {}", result::host_error_text(errno));
    return end;
  }
  auto arguments = spec.arguments;
  auto environment = merged_environment(spec.environment);
  auto argument_pointers = pointers(arguments);
  auto environment_pointers = pointers(environment);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    end.start_error = fmt::format("cannot start a process: {}", result::host_error_text(errno));
    return end;
  }
  if (pid == 0)
    become(argument_pointers.data(), environment_pointers.data(), log.get(), progress_write.get(),
           error_write.get(), parent);
  setpgid(pid, pid);  // in both, so that neither has to wait for the other
  set_worker_group(pid);
  progress_write.reset();
  error_write.reset();

  Watch watch(spec, pid);
  const auto problem = exec_error(error_read.get());
  wait_for_end(pid, watch, progress_read.get(), on_line, cancelled);
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  set_worker_group(0);

  if (problem) {
    const bool refused = result::is_host_error(*problem) || *problem == ETXTBSY;
    end.start_error = fmt::format(
        "cannot start {}: {}{}", arguments[0], std::strerror(*problem),
        refused ? result::host_advice(*problem) : "; `peakbench doctor` says what is missing");
    return end;
  }
  end.stopped = watch.stopped();
  end.wall_ns = watch.wall_ns();
  end.peak_rss_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  end.cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

}  // namespace peakbench::launch
