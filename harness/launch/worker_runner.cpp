#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "launch/interrupt.h"
#include "launch/machine_load.h"
#include "launch/outcome.h"
#include "launch/runner.h"
#include "result/errors.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush())
    throw ConfigError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

std::int64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

void read_result(const std::string& path, Evidence& evidence) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    evidence.written = result::worker_result_from_json(nlohmann::json::parse(text));
  } catch (const std::exception& error) {
    evidence.read_problem = fmt::format("{} holds {} bytes: {}", fs::path(path).filename().string(),
                                        text.size(), error.what());
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
  fs::remove(order.job.result_path);

  Evidence evidence;
  evidence.timeout_s = order.timeout.count();
  evidence.rss_limit_bytes = order.rss_limit_bytes;
  const auto on_line = [&](const std::string& line) {
    try {
      evidence.last = result::progress_from_json(nlohmann::json::parse(line));
    } catch (const std::exception&) {
      return;  // progress is for the eye; a bad line costs nothing
    }
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
