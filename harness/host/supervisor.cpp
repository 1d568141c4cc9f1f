#include "host/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/file.h"
#include "host/process_tree.h"
#include "host/worker_output.h"

namespace peakbench::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFirstFree = 10;  // above every number that a descriptor is to have
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;
constexpr std::array kIgnored{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ};
constexpr auto kPatience = std::chrono::seconds(5);  // with what cannot be killed

// Between fork and exec: what the parent ignored, blocked or opened is not the program's.
void forget_signals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : kIgnored) signal(number, SIG_DFL);
}

// What the child does after fork.
[[noreturn]] void become(const Body& body, const SupervisorEnds& ends, int error, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before we asked to die with it
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    [[maybe_unused]] const auto written = write(score, "1000", 4);
    close(score);
  }
  error = fcntl(error, F_DUPFD_CLOEXEC, kFirstFree);
  dup2(ends.output_write, 1);
  dup2(ends.output_write, 2);
  dup2(ends.progress_write, kProgressDescriptor);
  forget_signals();
  const int problem = body();
  [[maybe_unused]] const auto written = write(error, &problem, sizeof problem);
  _exit(127);
}

// 0, or the errno of a body that could not become the program: one that can closes the pipe.
int body_error(int pipe) {
  int problem = 0;
  const ssize_t count = TEMP_FAILURE_RETRY(read(pipe, &problem, sizeof problem));
  return count == static_cast<ssize_t>(sizeof problem) ? problem : 0;
}

// Decides when to end the program, and ends it: first asking, then without asking.
class Watch {
 public:
  Watch(const ProcessSpec& spec, pid_t pid)
      : spec_(spec), pid_(pid), memory_(pid, spec.rss_limit_bytes), start_(Clock::now()) {}

  void look(bool cancelled) {
    const auto now = Clock::now();
    if (stopped_ == Stop::kNone) {
      if (cancelled) {
        stop(Stop::kInterrupt, SIGTERM);
      } else if (spec_.timeout.count() > 0 && passed(now) > spec_.timeout) {
        stop(Stop::kTimeout, SIGTERM);
      } else if (memory_.over(now)) {
        stop(Stop::kMemory, SIGKILL);
      }
    } else if (now - stopped_at_ > spec_.grace) {
      send(SIGKILL);
    }
  }
  // Its group by its number, and the program by its own: it may have left the group.
  void send(int number) const {
    kill(-pid_, number);
    kill(pid_, number);
  }
  Stop stopped() const { return stopped_; }
  std::int64_t wall_ns() const { return (Clock::now() - start_) / std::chrono::nanoseconds(1); }

 private:
  // Whole milliseconds: the longest timeouts have more nanoseconds than a number holds.
  std::chrono::milliseconds passed(Clock::time_point now) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - start_);
  }
  void stop(Stop why, int number) {
    stopped_ = why;
    stopped_at_ = Clock::now();
    send(number);
    send(SIGCONT);  // who is stopped hears nothing
  }

  const ProcessSpec& spec_;
  pid_t pid_;
  TreeMemory memory_;
  Clock::time_point start_, stopped_at_;
  Stop stopped_ = Stop::kNone;
};

// Has the program ended? Leaves it as a zombie, so that its numbers stay taken until its group is
// killed. Others that became our children and have ended are reaped.
bool has_ended(pid_t pid) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
    if (info.si_pid == pid) return true;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

// A round's worth; false at the end of the pipe.
bool keep_some(int pipe, KeptOutput& kept) {
  static std::array<char, 65536> chunk;
  for (std::size_t total = 0; total < kReadAtOnce;) {
    const ssize_t count = TEMP_FAILURE_RETRY(read(pipe, chunk.data(), chunk.size()));
    if (count == 0 || (count < 0 && errno != EAGAIN)) return false;
    if (count < 0) return true;
    kept.add({chunk.data(), static_cast<std::size_t>(count)});
    total += static_cast<std::size_t>(count);
  }
  return true;
}

// What we were told: end the program in peace, or at once since nobody is left who waits for it.
class Control {
 public:
  Control(int pipe, pid_t parent) : pipe_(pipe), parent_(parent) {
    fcntl(pipe_, F_SETFL, O_NONBLOCK);
  }
  int pipe() const { return orphaned_ ? -1 : pipe_; }
  void look() {
    char byte = 0;
    const ssize_t count = read(pipe_, &byte, 1);
    cancelled_ = cancelled_ || count > 0;
    orphaned_ = orphaned_ || count == 0 || (parent_ != kNobody && getppid() != parent_);
  }
  bool cancelled() const { return cancelled_ || orphaned_; }
  bool orphaned() const { return orphaned_; }

 private:
  int pipe_;
  pid_t parent_;
  bool cancelled_ = false, orphaned_ = false;
};

std::int64_t nanoseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::int64_t>(time.tv_usec) * 1000;
}

class Supervisor {
 public:
  Supervisor(const ProcessSpec& spec, const SupervisorEnds& ends, pid_t parent)
      : spec_(spec), ends_(ends), kept_(ends.log), control_(ends.control_read, parent) {}

  SupervisorReport run(const Body& body) {
    int error[2];
    if (pipe2(error, O_CLOEXEC) != 0) return not_started(SupervisorReport::NotStarted::kNoProcess);
    const pid_t self = getpid();
    const pid_t pid = fork();
    if (pid < 0) return not_started(SupervisorReport::NotStarted::kNoProcess);
    if (pid == 0) become(body, ends_, error[1], self);
    setpgid(pid, pid);  // in both, so that neither has to wait for the other
    for (const int end : {error[1], ends_.progress_write, ends_.output_write}) close(end);
    Watch watch(spec_, pid);
    errno = body_error(error[0]);
    if (errno != 0) not_started(SupervisorReport::NotStarted::kNoProgram);
    wait_for_end(pid, watch);
    report_.stopped = watch.stopped();
    report_.wall_ns = watch.wall_ns();
    bury(pid, watch);
    return report_;
  }

  std::string_view last_words() const { return kept_.last_words(); }

 private:
  SupervisorReport not_started(SupervisorReport::NotStarted why) {
    report_.not_started = why;
    report_.start_errno = errno;
    return report_;
  }

  void wait_for_end(pid_t pid, Watch& watch) {
    fcntl(ends_.output_read, F_SETFL, O_NONBLOCK);
    const int ended =
        static_cast<int>(syscall(SYS_pidfd_open, pid, 0));  // -1: poll goes on without
    bool open = true;
    while (!has_ended(pid)) {
      std::array<pollfd, 3> wanted{pollfd{open ? ends_.output_read : -1, POLLIN, 0},
                                   pollfd{control_.pipe(), POLLIN, 0}, pollfd{ended, POLLIN, 0}};
      poll(wanted.data(), wanted.size(), kPollMs);
      if (open) open = keep_some(ends_.output_read, kept_);
      control_.look();
      if (control_.orphaned()) watch.send(SIGKILL);
      watch.look(control_.cancelled());
    }
  }

  // The program, what it left behind, and its last words.
  void bury(pid_t pid, const Watch& watch) {
    watch.send(SIGKILL);  // its group, while its number is still taken
    int status = 0;
    rusage usage{};
    wait4(pid, &status, 0, &usage);
    report_.wait_status = status;
    report_.peak_rss_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
    report_.left_running = end_descendants(kPatience);
    getrusage(RUSAGE_CHILDREN, &usage);
    report_.cpu_ns = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    keep_some(ends_.output_read, kept_);
    keep_some(ends_.output_read, kept_);  // a pipe may hold more than one round
    kept_.finish();
    report_.log_errno = kept_.error();
  }

  static constexpr int kPollMs = 20;

  const ProcessSpec& spec_;
  SupervisorEnds ends_;
  KeptOutput kept_;
  Control control_;
  SupervisorReport report_;
};

void write_whole(int pipe, const void* data, std::size_t size) {
  for (const char* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t written = TEMP_FAILURE_RETRY(write(pipe, at, size));
    if (written <= 0) return;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
}

// Out of the way of the numbers that descriptors are to have, and alone: what else we have open (a
// lock, a terminal, somebody's pipe) must not stay open when our parent ends.
SupervisorEnds alone_with(SupervisorEnds ends) {
  const std::array<int*, 6> kept{&ends.progress_write, &ends.output_read,
                                 &ends.output_write,   &ends.log,
                                 &ends.control_read,   &ends.report_write};
  for (int* end : kept) *end = fcntl(*end, F_DUPFD_CLOEXEC, kFirstFree);
  std::vector<int> numbers;
  for (const int* end : kept) numbers.push_back(*end);
  close_all_but(numbers);
  const int null = open("/dev/null", O_RDWR);  // the lowest number that is free: 0
  for (const int number : {0, 1, 2}) dup2(null, number);
  return ends;
}

[[noreturn]] void supervise(const ProcessSpec& spec, const SupervisorEnds& given, pid_t parent,
                            const Body& body) {
  setsid();  // a Ctrl-C or Ctrl-Z is for our parent, and /dev/tty not for plugins
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NAME, "peakbench-watch");
  for (const int number : kIgnored) signal(number, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  const auto ends = alone_with(given);
  Supervisor supervisor(spec, ends, parent);
  const auto report = supervisor.run(body);
  write_whole(ends.report_write, &report, sizeof report);
  write_whole(ends.report_write, supervisor.last_words().data(), supervisor.last_words().size());
  _exit(0);
}

}  // namespace

pid_t start_supervisor(const ProcessSpec& spec, const SupervisorEnds& ends, pid_t parent,
                       const Body& body, const std::function<void()>& first) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (first) first();
  supervise(spec, ends, parent, body);
}

void close_all_but(const std::vector<int>& descriptors) {
  for (const auto& name : files::names_in("/proc/self/fd"))
    if (const int fd = std::atoi(name.c_str()); std::ranges::count(descriptors, fd) == 0) close(fd);
}

}  // namespace peakbench::process
