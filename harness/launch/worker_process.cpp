#include "launch/worker_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/regular_file.h"
#include "launch/worker_environment.h"
#include "records/device.h"
#include "records/run_files.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

// The file that a worker leaves as its result. A plugin shares the worker's process and may have
// put anything there.

// More than a million steps' times and losses take.
constexpr std::size_t kMostResultBytes = std::size_t{256} << 20;

// Nullopt where there is none.
std::optional<std::string> text_at(const std::string& path) {
  files::RegularFile file(path, files::RegularFile::Links::kRefuse);
  if (file.error() == ENOENT) return std::nullopt;
  if (file.error() != 0) throw std::system_error(file.error(), std::generic_category());
  if (!file.is_open()) throw std::runtime_error("is no file");
  if (file.size() > kMostResultBytes)
    throw std::runtime_error(fmt::format("holds {} bytes, more than a result takes", file.size()));
  std::string text(file.size(), '\0');
  text.resize(file.read(text.data(), text.size()));
  return text;
}

records::WorkerResult parsed(const std::string& text) {
  try {
    auto json = parse_json(text);
    bound_texts(json);
    return records::worker_result_from_json(json);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("holds {} bytes: {}", text.size(), error.what()));
  }
}

// Fills `written`, its texts bounded, or `read_problem`; neither where there is nothing at the
// path. Never waits and never throws: pipes, folders, links, sockets and files that are too large
// are problems.
void read_result(const std::string& path, Evidence& evidence) {
  try {
    if (const auto text = text_at(path)) evidence.written = parsed(*text);
  } catch (const std::system_error& error) {
    evidence.read_error = fmt::format("the worker's result cannot be read: {}: {}", path,
                                      host_error_text(error.code().value()));
  } catch (const std::exception& error) {
    evidence.read_problem =
        fmt::format("{} {}", fs::path(path).filename().string(), bounded(error.what()));
  }
}

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
               const std::function<void(const records::Progress&)>& progress) {
  try {
    const auto said = parse_json(line);
    if (const auto what = said.find(records::kHostFailureKey); what != said.end()) {
      evidence.host_failure = bounded(what->get<std::string>());
      return;
    }
    if (const auto site = said.find(records::kCrashKey); site != said.end()) {
      evidence.crash = crash_site_from_json(*site);
      return;
    }
    auto at = records::progress_from_json(said);
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
  write_text(order.job_path, records::to_json(order.job).dump(2) + "\n");
}

Evidence run_worker_process(const WorkerOrder& order, const process::ProcessSpec& spec,
                            process::ForkServer* server,
                            const std::function<void(const records::Progress&)>& progress,
                            const std::function<bool()>& cancelled) {
  Evidence evidence;
  evidence.timeout_s = std::chrono::duration_cast<std::chrono::seconds>(spec.timeout).count();
  evidence.rss_limit_bytes = spec.rss_limit_bytes;
  evidence.is_program = order.job.program.has_value();
  evidence.memory_is_device = records::device_from(order.job.device).is_host_memory;
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

WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const process::Environment& environment) {
  process::ProcessSpec spec;
  spec.arguments = {worker};
  spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
  spec.environment = environment;
  spec.log_path = "/dev/null";  // its last words are enough, and there may be no other place
  spec.timeout = std::chrono::seconds(60);
  const auto end = process::run_process(
      spec, [](const std::string&) {}, [] { return false; });
  WorkerSaid said;
  said.text = end.last_words;
  said.end = printable(end.start_error.empty() ? launch::log_tail(said.text) : end.start_error);
  said.wall_ns = end.wall_ns;
  return said;
}

namespace {

std::string beside(const std::string& folder, records::CaseFile file) {
  return (fs::absolute(folder) / name_of(file)).string();
}

records::Job read_job(const std::string& path) {
  try {
    return records::job_from_json(
        parse_json(files::read_regular_file(path, files::kMostSmallText)));
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw ConfigError(fmt::format("{}: no job of a worker: {}", path, error.what()));
  }
}

}  // namespace

WorkerOrder order_from_file(const std::string& job_path, const std::string& folder,
                            const planning::Worker& worker) {
  WorkerOrder order;
  order.program = worker.program;
  order.job = read_job(job_path);
  order.job.result_path = beside(folder, records::CaseFile::kMemoryResult);
  order.job.trace_path = beside(folder, records::CaseFile::kTrace);
  order.job.read_parameters_path.clear();
  order.job.write_parameters_path.clear();
  order.job_path = beside(folder, records::CaseFile::kMemoryJob);
  order.environment = environment_for(records::device_from(order.job.device), worker);
  return order;
}

std::vector<std::string> debugger_command(const std::string& debugger,
                                          const std::vector<std::string>& more,
                                          const WorkerOrder& order) {
  const bool is_lldb = fs::path(debugger).filename().string().find("lldb") != std::string::npos;
  std::vector<std::string> command{debugger};
  const auto add = [&](const std::vector<std::string>& words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  // A shell between would have the variables, too, and the stand-ins of an emulated card loaded.
  if (!is_lldb) add({"-q", "-ex", "set startup-with-shell off"});
  for (const auto& [name, value] : order.environment) {
    if (is_lldb)
      add({"-o", fmt::format("settings append target.env-vars \"{}={}\"", name, value)});
    else
      add({"-ex", fmt::format("set environment {} = {}", name, value)});
  }
  add(more);
  add({is_lldb ? "--" : "--args", order.program, order.job_path});
  return command;
}

void become(const std::vector<std::string>& command, const WorkerOrder& order) {
  write_job(order);
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
  auto words = command;
  execvp(words.front().c_str(), process::pointers(words).data());
  throw ConfigError(fmt::format("cannot start {}: {}", command.front(), host_error_text(errno)));
}

}  // namespace peakbench::launch
