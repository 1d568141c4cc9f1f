// peakbench-worker JOB.json: runs one job of a case and writes its result. Started by `peakbench`.
// peakbench-worker --serve: forks a worker for each job that it is asked for (host/serve.h).
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/printable.h"
#include "host/serve.h"
#include "peakbench/errors.h"
#include "recording/device.h"
#include "records/torch_variables.h"
#include "worker/fatal_signal.h"
#include "worker/jobs.h"
#include "worker/ledger.h"
#include "worker/plugin_call.h"
#include "worker/progress.h"
#include "worker/setup.h"

namespace {

using namespace peakbench;

records::WorkerResult failed(records::Status status, const std::string& reason) {
  records::WorkerResult result;
  result.status = status;
  result.reason = reason;
  return result;
}

// ", step 2 of 3, backward": where it happened, for the middle of a message.
std::string here() {
  const std::string place = worker::place_in_words();
  return place.empty() ? "" : ", " + place;
}

// Throws HostError for what the machine did, whoever threw it.
records::WorkerResult measure(const records::Job& job,
                              std::optional<records::Emulation>& until_failure) {
  try {
    return job.mode == records::JobMode::kMemory ? worker::run_memory_job(job, until_failure)
                                                 : worker::run_throughput_job(job);
  } catch (const std::exception& error) {
    if (const auto reason = worker::host_failure(error); !reason.empty())
      throw HostError(reason + here());
    throw;
  }
}

// The one place that catches what plugins throw.
records::WorkerResult outcome_of(const records::Job& job,
                                 std::optional<records::Emulation>& until_failure) {
  try {
    return measure(job, until_failure);
  } catch (const HostError&) {
    throw;
  } catch (const Unsupported& error) {
    return failed(records::Status::kUnsupported, error.what());
  } catch (const OptionError& error) {
    return failed(records::Status::kUnsupported, error.what());
  } catch (const ConfigError& error) {
    return failed(records::Status::kUnsupported, error.what());
  } catch (const worker::NoEffect& error) {
    return failed(records::Status::kNoEffect, error.what());
  } catch (const PluginError& error) {
    return failed(records::Status::kCrashed, error.what());
  } catch (const worker::PluginFailure& error) {
    const auto& owner = error.owner();
    const auto who =
        owner.id.empty() ? "LibTorch" : owner.path + ": " + owner.id + " threw in " + error.call();
    return failed(records::Status::kCrashed, who + here() + ": " + error.what());
  } catch (const TraceError& error) {
    return failed(records::Status::kCrashed,
                  std::string("the trace does not add up (please report this): ") + error.what());
  } catch (const c10::OutOfMemoryError& error) {
    return failed(records::Status::kOutOfMemory, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    return failed(records::Status::kCrashed,
                  "LibTorch" + here() + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    return failed(records::Status::kCrashed,
                  "internal error in the worker (or in plugin code not called by it)" + here() +
                      ": " + error.what());
  } catch (...) {
    return failed(records::Status::kCrashed,
                  "a plugin threw something that is no std::exception" + here());
  }
}

// A failure may rest on what an emulated card could not answer: the record has it, and the reason.
records::WorkerResult run(const records::Job& job) {
  std::optional<records::Emulation> until_failure;
  auto outcome = outcome_of(job, until_failure);
  if (outcome.emulation || !until_failure) return outcome;
  outcome.emulation = std::move(until_failure);
  if (const auto& verdict = outcome.emulation->verdict)
    outcome.reason += worker::doubt_of_failure(*verdict);
  return outcome;
}

// `peakbench doctor` asks: can a tensor be made there?
int try_device(const std::string& name) {
  try {
    records::Job job;
    job.device = name;
    const auto device = worker::make_device(job);
    const auto tensor = at::empty({1}, at::TensorOptions().device(device->torch_device()));
    std::printf("%s works\n", name.c_str());
    return 0;
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "LibTorch: %s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

// Who started this process reads it at once and takes it away: it need not reach the disk.
void write_result(const std::string& path, const records::WorkerResult& outcome) {
  files::AtomicFile file(path);
  file.write(json_line(records::to_json(outcome)));
  constexpr bool kDurable = false;
  file.finish(kDurable);
}

// The exit code.
int run_job(const std::string& path) {
  worker::prepare_for_host_failures();
  worker::prepare_for_fatal_signals();
  try {
    std::ifstream file(path);
    const records::Job job = records::job_from_json(nlohmann::json::parse(file));
    records::WorkerResult outcome = run(job);
    outcome.reason = bounded(outcome.reason);  // what a plugin throws may have any length
    if (!outcome.reason.empty()) std::fprintf(stderr, "%s\n", outcome.reason.c_str());
    write_result(job.result_path, outcome);
    return 0;
  } catch (const std::exception& error) {
    if (const auto reason = worker::host_failure(error); !reason.empty())
      worker::end_as_host_failure(reason);
    std::fprintf(stderr, "peakbench-worker: %s\n", error.what());
    return 1;
  }
}

// Static destruction would run LibTorch's and the plugins' in an order nobody chose; the result is
// on disk.
[[noreturn]] void end(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

// Loads what each job on an emulated card takes longest over, and uses nothing of it: a context,
// autograd's engine and ATen's pool have threads or a process's identity, which a fork takes from
// them.
[[noreturn]] void serve_jobs() {
  recording::load_module_of(records::DeviceKind::kEmulated);
  process::serve({recording::why_not_forked, [](const std::vector<std::string>& arguments) {
                    return run_job(arguments.at(0));
                  }});
}

}  // namespace

int main(int argc, char** argv) {
  records::forget_inherited_settings();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--try-device") end(try_device(arguments[1]));
  if (arguments.size() != 1) {
    std::fprintf(
        stderr,
        "usage: peakbench-worker JOB.json\nStarted by `peakbench run`, which writes the job.\n");
    return 2;
  }
  if (arguments[0] == "--serve") serve_jobs();
  end(run_job(arguments[0]));
}
