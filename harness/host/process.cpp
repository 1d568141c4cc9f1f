#include "host/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "base/errors.h"
#include "host/fork_server.h"
#include "host/supervisor.h"
#include "host/worker_output.h"

namespace peakbench::process {

std::vector<std::string> merged_environment(const Environment& added,
                                            const std::vector<std::string>& without) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    const bool left_out = std::ranges::any_of(
        without, [&](const std::string& beginning) { return text.starts_with(beginning); });
    if (equals != std::string::npos && !left_out)
      all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : added) all[name] = value;
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

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 50;
constexpr int kOutputPipeBytes = 1 << 20;  // a worker that prints a lot seldom waits
// How much later than it should a supervisor may end; then something has stopped it.
constexpr auto kSupervisorLate = std::chrono::seconds(15);

// The file of a log. Nothing that a plugin put in its place is followed or waited for.
int open_log(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  return open(path.c_str(), kFlags, 0644);
}

// What arrives on the supervisor's report pipe.
class ReportReader {
 public:
  explicit ReportReader(int pipe) : pipe_(pipe) { fcntl(pipe_, F_SETFL, O_NONBLOCK); }

  // False at the end.
  bool read_some() {
    char chunk[4096];
    for (;;) {
      const ssize_t count = read(pipe_, chunk, sizeof chunk);
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      if (count == 0) return false;
      text_.append(chunk, static_cast<std::size_t>(count));
    }
  }
  // Nullopt where it ended before it could report.
  std::optional<SupervisorReport> report() const {
    SupervisorReport report;
    if (text_.size() < sizeof report) return std::nullopt;
    std::memcpy(&report, text_.data(), sizeof report);
    return report;
  }
  std::string last_words() const {
    return text_.substr(std::min(text_.size(), sizeof(SupervisorReport)));
  }

 private:
  int pipe_;
  std::string text_;
};

// Tells the supervisor to end its program, and ends a supervisor that does not come to its end.
class Orders {
 public:
  Orders(const ProcessSpec& spec, pid_t supervisor, int control)
      : spec_(spec), supervisor_(supervisor), control_(control), from_(Clock::now()) {}

  void look(bool cancelled) {
    if (cancelled && !cancelled_) {
      cancelled_ = true;
      from_ = Clock::now();
      [[maybe_unused]] const auto written = write(control_, "c", 1);
    }
    if (is_late()) kill(supervisor_, SIGKILL);
  }

 private:
  // Whole milliseconds: the longest timeouts have more nanoseconds than a number holds.
  bool is_late() const {
    if (!cancelled_ && spec_.timeout.count() == 0) return false;
    const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - from_);
    const auto late = passed - spec_.grace - kSupervisorLate;
    return late > (cancelled_ ? std::chrono::milliseconds(0) : spec_.timeout);
  }

  const ProcessSpec& spec_;
  pid_t supervisor_;
  int control_;
  bool cancelled_ = false;
  Clock::time_point from_;
};

// Until the supervisor has closed its report pipe, which it does by ending.
void listen(ReportReader& report, int report_pipe, ProgressLines& lines, int progress_pipe,
            Orders& orders, const std::function<void(const std::string&)>& on_line,
            const std::function<bool()>& cancelled) {
  bool open = true;
  // After a round with progress comes one without: however much arrives, it is read in portions.
  bool rest = false;
  for (;;) {
    std::array<pollfd, 2> wanted{pollfd{report_pipe, POLLIN, 0},
                                 pollfd{open && !rest ? progress_pipe : -1, POLLIN, 0}};
    poll(wanted.data(), wanted.size(), kPollMs);
    rest = wanted[1].revents != 0;
    if (rest) open = lines.read_some(on_line);
    if (wanted[0].revents != 0 && !report.read_some()) break;
    orders.look(cancelled());
  }
  if (open) lines.read_some(on_line);
}

std::string start_error(const SupervisorReport& report, const std::string& program) {
  using NotStarted = SupervisorReport::NotStarted;
  const int problem = report.start_errno;
  if (report.not_started == NotStarted::kNo) return "";
  if (report.not_started == NotStarted::kNoProcess)
    return fmt::format("cannot start a process: {}", host_error_text(problem));
  const bool refused = is_host_error(problem) || problem == ETXTBSY;
  return fmt::format("cannot start {}: {}{}", program, std::strerror(problem),
                     refused ? host_advice(problem) : "; `peakbench doctor` says what is missing");
}

ProcessEnd end_of(const SupervisorReport& report, const ProcessSpec& spec) {
  ProcessEnd end;
  end.start_error = start_error(report, spec.arguments[0]);
  end.stopped = report.stopped;
  end.wall_ns = report.wall_ns;
  end.peak_rss_bytes = report.peak_rss_bytes;
  end.cpu_ns = report.cpu_ns;
  end.left_running = report.left_running;
  if (report.log_errno != 0)
    end.log_error =
        fmt::format("{}: cannot write: {}", spec.log_path, host_error_text(report.log_errno));
  if (WIFSIGNALED(report.wait_status)) end.signal = WTERMSIG(report.wait_status);
  if (WIFEXITED(report.wait_status)) end.exit_code = WEXITSTATUS(report.wait_status);
  return end;
}

// Who is between us and the program; pid -1: nobody, with errno.
struct Supervising {
  pid_t pid = -1;
  bool is_child = false;
  std::string server_problem;
};

Supervising start_by_exec(const ProcessSpec& spec, const SupervisorEnds& ends) {
  auto arguments = spec.arguments;
  auto environment = merged_environment(with_progress(spec.environment));
  const auto argv = pointers(arguments), envp = pointers(environment);
  const auto body = [&] {
    execve(argv[0], argv.data(), envp.data());
    return errno;
  };
  return {start_supervisor(spec, ends, getpid(), body), true, ""};
}

Supervising start(const ProcessSpec& spec, const SupervisorEnds& ends, ForkServer* server,
                  const std::function<bool()>& cancelled) {
  if (server == nullptr) return start_by_exec(spec, ends);
  auto started = server->start(spec, ends, cancelled);
  if (started.supervisor > 0) return {started.supervisor, false, std::move(started.problem)};
  auto supervising = start_by_exec(spec, ends);
  supervising.server_problem = std::move(started.problem);
  return supervising;
}

}  // namespace

Environment with_progress(Environment added) {
  added.emplace_back("PEAKBENCH_PROGRESS_FD", std::to_string(kProgressDescriptor));
  return added;
}

ProcessEnd run_process(const ProcessSpec& spec,
                       const std::function<void(const std::string&)>& on_line,
                       const std::function<bool()>& cancelled, ForkServer* server) {
  ProcessEnd end;
  Fd log(open_log(spec.log_path));
  if (log.get() < 0) {
    end.start_error = fmt::format("{}: cannot write: {}", spec.log_path, host_error_text(errno));
    return end;
  }
  Pipe progress, output, control, report;
  for (Pipe* pipe : {&progress, &output, &control, &report})
    if (!pipe->open()) {
      end.start_error = fmt::format("cannot make a pipe: {}", host_error_text(errno));
      return end;
    }
  fcntl(progress.write.get(), F_SETFL, O_NONBLOCK);  // no worker waits for whoever reads it
  fcntl(output.write.get(), F_SETPIPE_SZ, kOutputPipeBytes);

  const auto started_at = Clock::now();
  const auto supervisor = start(spec,
                                {.progress_write = progress.write.get(),
                                 .output_read = output.read.get(),
                                 .output_write = output.write.get(),
                                 .log = log.get(),
                                 .control_read = control.read.get(),
                                 .report_write = report.write.get()},
                                server, cancelled);
  if (supervisor.pid < 0) {
    end.start_error = fmt::format("cannot start a process: {}", host_error_text(errno));
    return end;
  }
  for (Fd* theirs :
       {&progress.write, &output.read, &output.write, &log, &control.read, &report.write})
    theirs->reset();

  ReportReader reader(report.read.get());
  ProgressLines lines(progress.read.get());
  Orders orders(spec, supervisor.pid, control.write.get());
  listen(reader, report.read.get(), lines, progress.read.get(), orders, on_line, cancelled);
  if (supervisor.is_child) TEMP_FAILURE_RETRY(waitpid(supervisor.pid, nullptr, 0));

  if (const auto found = reader.report()) {
    end = end_of(*found, spec);
  } else {  // something killed it, and the program died with it
    end.signal = SIGKILL;
    end.wall_ns = (Clock::now() - started_at) / std::chrono::nanoseconds(1);
  }
  end.server_problem = supervisor.server_problem;
  end.last_words = reader.last_words();
  return end;
}

}  // namespace peakbench::process
