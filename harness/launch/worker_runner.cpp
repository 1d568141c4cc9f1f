#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "launch/interrupt.h"
#include "launch/machine_load.h"
#include "launch/outcome.h"
#include "launch/runner.h"
#include "result/atomic_file.h"
#include "result/errors.h"
#include "result/file.h"
#include "result/host_limits.h"
#include "result/parse_json.h"
#include "result/read_file.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) result::cannot_write(path, errno);
}

std::int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

// Nullopt where there is none. Throws std::system_error where the system cannot read it.
std::optional<std::string> text_of(const std::string& path) {
  // Whatever a plugin put there: a pipe is not waited for, and nothing is read without an end.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  std::string text;
  char chunk[65536];
  ssize_t count = file < 0 ? -1 : 0;
  while (file >= 0 && text.size() <= result::kMostWorkerText &&
         (count = read(file, chunk, sizeof chunk)) > 0)
    text.append(chunk, static_cast<std::size_t>(count));
  const int problem = errno;
  if (file >= 0) close(file);
  if (count < 0) throw std::system_error(problem, std::generic_category());
  return text;
}

void read_result(const std::string& path, Evidence& evidence) {
  std::optional<std::string> text;
  try {
    text = text_of(path);
  } catch (const std::system_error& error) {
    evidence.read_error = fmt::format("the worker's result cannot be read: {}: {}", path,
                                      result::host_error_text(error.code().value()));
    return;
  }
  if (!text) return;
  try {
    evidence.written = result::worker_result_from_json(result::parse_json(*text));
  } catch (const std::exception& error) {
    evidence.read_problem = fmt::format("{} holds {} bytes: {}", fs::path(path).filename().string(),
                                        text->size(), error.what());
  }
}

}  // namespace

ProcessRunner::ProcessRunner(std::string worker_path) : worker_path_(std::move(worker_path)) {
  if (access(worker_path_.c_str(), X_OK) != 0)
    throw ConfigError(
        fmt::format("no worker program: {}: {}. It is built and installed beside peakbench; "
                    "`peakbench doctor` says more.",
                    worker_path_, std::strerror(errno)));
}

WorkerReport ProcessRunner::run(const WorkerOrder& order, const Listener& listener) {
  write_text(order.job_path, result::to_json(order.job).dump(2) + "\n");
  result::remove_file(order.job.result_path);

  Evidence evidence;
  evidence.timeout_s = order.timeout.count();
  evidence.rss_limit_bytes = order.rss_limit_bytes;
  evidence.memory_is_device = order.job.device == "cpu";
  const auto on_line = [&](const std::string& line) {
    try {
      const auto said = nlohmann::json::parse(line);
      if (const auto what = said.find(result::kHostFailureKey); what != said.end())
        evidence.host_failure = what->get<std::string>();
      else
        evidence.last = result::progress_from_json(said);
    } catch (const std::exception&) {
      return;  // progress is for the eye; a bad line costs nothing
    }
    if (!evidence.host_failure.empty()) return;
    listener.progress(*evidence.last);
  };
  ProcessSpec spec;
  spec.arguments = {worker_path_, order.job_path};
  spec.environment = order.environment;
  spec.log_path = order.log_path;
  spec.timeout = order.timeout;
  spec.rss_limit_bytes = order.rss_limit_bytes;
  const auto log_start = size_of(order.log_path);
  const auto kills_before = kernel_memory_kills();
  const LoadWatch load;
  evidence.end = run_process(spec, on_line, [&] {
    listener.tick();
    return interrupted();
  });
  evidence.kernel_ran_out = kernel_memory_kills() > kills_before;
  read_result(order.job.result_path, evidence);
  evidence.log_tail = log_tail(order.log_path, log_start);
  std::error_code ignored;
  fs::remove(order.job.result_path, ignored);

  WorkerReport report;
  report.result = outcome(evidence);
  report.peak_rss_bytes = evidence.end.peak_rss_bytes;
  report.wall_ns = evidence.end.wall_ns;
  report.other_busy_cores = load.other_busy_cores(evidence.end.cpu_ns, evidence.end.wall_ns);
  report.interrupted = evidence.end.stopped == Stop::kInterrupt;
  return report;
}

}  // namespace peakbench::launch
