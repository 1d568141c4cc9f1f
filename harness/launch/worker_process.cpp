#include "launch/worker_process.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "files/atomic_file.h"
#include "json/parse_json.h"
#include "launch/worker_result.h"
#include "result/device.h"
#include "text/bounded_text.h"
#include "text/printable.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) files::cannot_write(path, errno);
}

// Progress is for the eye; a bad line costs nothing.
void take_line(const std::string& line, Evidence& evidence,
               const std::function<void(const result::Progress&)>& progress) {
  try {
    const auto said = parse_json(line);
    if (const auto what = said.find(result::kHostFailureKey); what != said.end()) {
      evidence.host_failure = bounded(what->get<std::string>());
      return;
    }
    if (const auto site = said.find(result::kCrashKey); site != said.end()) {
      evidence.crash = crash_site_from_json(*site);
      return;
    }
    auto at = result::progress_from_json(said);
    at.phase = printable(at.phase);
    evidence.last = std::move(at);
  } catch (const std::exception&) {
    return;
  }
  progress(*evidence.last);
}

}  // namespace

void write_job(const WorkerOrder& order) {
  // Not written through: a plugin of the worker before may have put a pipe there.
  remove_quietly(order.job_path);
  remove_quietly(order.job.result_path);
  write_text(order.job_path, result::to_json(order.job).dump(2) + "\n");
}

Evidence run_worker_process(const WorkerOrder& order, const process::ProcessSpec& spec,
                            process::ForkServer* server,
                            const std::function<void(const result::Progress&)>& progress,
                            const std::function<bool()>& cancelled) {
  Evidence evidence;
  evidence.timeout_s = std::chrono::duration_cast<std::chrono::seconds>(spec.timeout).count();
  evidence.rss_limit_bytes = spec.rss_limit_bytes;
  evidence.is_program = order.job.program.has_value();
  evidence.memory_is_device = result::device_from(order.job.device).is_host_memory;
  evidence.log_name = fs::path(order.log_path).filename().string();
  const auto kills_before = kernel_memory_kills();
  evidence.end = process::run_process(
      spec, [&](const std::string& line) { take_line(line, evidence, progress); }, cancelled,
      server);
  evidence.kernel_ran_out = kernel_memory_kills() > kills_before;
  read_result(order.job.result_path, evidence);
  evidence.log_tail = log_tail(evidence.end.last_words);
  remove_quietly(order.job.result_path);
  return evidence;
}

}  // namespace peakbench::launch
