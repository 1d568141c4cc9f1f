#include "launch/debugger.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "files/read_file.h"
#include "json/parse_json.h"
#include "launch/device_environment.h"
#include "launch/worker_process.h"
#include "process/environment.h"
#include "result/case_files.h"
#include "result/device.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

std::string beside(const std::string& folder, result::CaseFile file) {
  return (fs::absolute(folder) / name_of(file)).string();
}

result::Job read_job(const std::string& path) {
  try {
    return result::job_from_json(parse_json(files::read_regular_file(path, files::kMostSmallText)));
  } catch (const ConfigError&) {
    throw;
  } catch (const std::exception& error) {
    throw ConfigError(fmt::format("{}: no job of a worker: {}", path, error.what()));
  }
}

}  // namespace

WorkerOrder order_from_file(const std::string& job_path, const std::string& folder,
                            const manifest::Worker& worker) {
  WorkerOrder order;
  order.program = worker.program;
  order.job = read_job(job_path);
  order.job.result_path = beside(folder, result::CaseFile::kMemoryResult);
  order.job.trace_path = beside(folder, result::CaseFile::kTrace);
  order.job.read_parameters_path.clear();
  order.job.write_parameters_path.clear();
  order.job_path = beside(folder, result::CaseFile::kMemoryJob);
  order.environment = environment_for(result::device_from(order.job.device), worker);
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
