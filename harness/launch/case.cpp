#include "launch/case.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "launch/incoming.h"
#include "launch/machine.h"
#include "launch/plugin_builds.h"
#include "launch/rounds.h"
#include "launch/run_folder.h"
#include "launch/run_worker.h"
#include "records/device.h"
#include "records/run_files.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::CaseFile;
using records::CaseResult;
using records::JobMode;
using records::Status;

constexpr const char* kNotTimedYet = "interrupted before the throughput was measured";

// Below the run's folder.
std::string path_of(CaseFile file, const records::CaseSpec& spec) {
  return records::case_folder(spec.slug) + "/" + name_of(file);
}

// Where its files are, and what it is to do.
WorkerOrder make_worker(const CaseOrder& order, JobMode mode, const Emulated& how,
                        std::int64_t budget_bytes) {
  const auto path = [&](CaseFile file) -> std::string {
    return fs::absolute(order.run_directory) / path_of(file, order.planned->spec);
  };
  const bool is_memory = mode == JobMode::kMemory;
  const auto& planned = *order.planned;
  const auto& request = *order.request;
  WorkerOrder worker;
  worker.job_path = path(is_memory ? CaseFile::kMemoryJob : CaseFile::kThroughputJob);
  worker.log_path = path(CaseFile::kLog);
  // What runs a program finds what that needs by itself, for the PyTorch that it imports.
  if (!planned.program) {
    worker.program = worker_of(planned).program;
    worker.environment =
        environment_for(records::device_from(planned.spec.device), worker_of(planned), how);
  }
  auto& job = worker.job;
  static_cast<records::Setting&>(job) = planned.spec;
  job.mode = mode;
  job.case_id = planned.spec.id;
  job.model_plugin = planned.model;
  job.strategy_plugins = planned.strategies;
  job.steps = request.steps;
  job.threads = request.threads;
  job.assume = request.assume;
  job.second_guesses = request.second_guesses;
  job.memory_limit_bytes = budget_bytes;
  job.result_path = path(is_memory ? CaseFile::kMemoryResult : CaseFile::kThroughputResult);
  job.program = planned.program;
  // The peak is over the first steps: what a step allocates for the first time belongs to it.
  job.warmup = is_memory ? 0 : request.warmup;
  if (!is_memory) return worker;
  job.trace_path = path(CaseFile::kTrace);
  job.write_parameters_path = order.checkpoint.write_path;
  job.read_parameters_path = order.checkpoint.read_path;
  job.promise = planned.promise;
  job.promise.reference_case = order.checkpoint.reference_case;
  return worker;
}

// Workers get names, so a link that somebody puts there afterwards is followed; one that is there
// is not: this case fails by it, and the others go on.
void make_case_folder(const std::string& run_directory, const std::string& slug) {
  files::make_folder(run_directory);
  try {
    files::Folder(run_directory).made(records::kCasesFolder).made(slug);
  } catch (const ConfigError& error) {
    throw HostError(error.what());
  }
}

// What an earlier attempt left must not be taken for this one's.
void remove_leftovers(const WorkerOrder& worker) {
  files::remove_file(worker.log_path);
  files::remove_file(worker.job.trace_path);
  files::remove_file(records::snapshot_beside(worker.job.trace_path));
}

// Of a program: an earlier attempt may have had more processes. `traces`: these, too, beside what
// was recorded and is in no trace.
void tidy(const CaseOrder& order, bool traces) {
  if (!order.planned->program) return;
  const auto cases = files::Folder(order.run_directory).folder(records::kCasesFolder);
  const auto folder = cases ? cases->folder(order.planned->spec.slug) : std::nullopt;
  if (!folder) return;
  remove_journals(*folder);
  for (const auto& name : folder->names())
    if (traces && records::rank_of(CaseFile::kTrace, name)) folder->remove_file(name);
}

// The worker knows what it compared; what was promised, and why there was nothing to compare with,
// is known here.
records::Equivalence equivalence(const CaseOrder& order,
                                 const std::optional<records::Equivalence>& found) {
  records::Equivalence result = found.value_or(records::Equivalence{});
  const auto& promise = order.planned->promise;
  if (result.promise.empty()) result.promise = promise.promise;
  result.different_problem = promise.different_problem;
  if (!result.tolerance) result.tolerance = promise.tolerance;
  if (!result.relative_tolerance) result.relative_tolerance = promise.relative_tolerance;
  if (result.reference_case.empty()) result.reference_case = order.checkpoint.reference_case;
  if (result.verdict.empty()) result.verdict = "not_checked";
  if (result.verdict == "not_checked" && !order.checkpoint.reason.empty())
    result.reason = order.checkpoint.reason;
  return result;
}

// A worker is one process. Those of a program are in its result.
records::Rank only_rank(const CaseOrder& order, const WorkerReport& report) {
  records::Rank rank;
  rank.memory = report.result.memory;
  if (rank.memory) rank.memory->worker_peak_rss_bytes = report.peak_rss_bytes;
  const auto trace = path_of(CaseFile::kTrace, order.planned->spec);
  if (files::is_there((fs::path(order.run_directory) / trace).string())) rank.trace = trace;
  return rank;
}

void take_memory(const CaseOrder& order, const WorkerReport& report, CaseResult& result) {
  const auto& found = report.result;
  static_cast<records::WorkerResult&>(result) = found;
  result.throughput.reset();
  result.equivalence.reset();
  if (!order.planned->program) result.ranks = {only_rank(order, report)};
  result.memory = headline_rank(result).memory;
  if (order.planned->program) result.settings.update(settings_of(*order.planned->program));
  const auto& spec = result.spec;
  if (!spec.torch.empty() || !spec.build.empty())  // the run has several
    result.environment.update(libtorch_of(worker_of(*order.planned)));
  if (!facts_of(result.spec.kind).has_promise) return;
  result.equivalence = equivalence(order, found.equivalence);
  if (result.equivalence->verdict == "not_checked" && result.equivalence->reason.empty())
    result.equivalence->reason = "the case ended " + to_string(found.status);
}

void take_host_failure(const std::string& reason, CaseResult& result) {
  CaseResult failed;
  failed.status = Status::kHostFailure;
  failed.reason = reason;
  failed.spec = result.spec;
  failed.added_for = result.added_for;
  failed.wall_ns = result.wall_ns;
  result = std::move(failed);
}

enum class Traces { kKept, kNone };

// The memory worker. nullopt: interrupted.
std::optional<CaseResult> run_once(const CaseOrder& order, Runner& runner, const Listener& listener,
                                   Traces traces) {
  CaseResult result;
  result.spec = order.planned->spec;
  result.added_for = order.planned->added_for;
  const auto prepare = [&](WorkerOrder& worker) {
    remove_leftovers(worker);
    tidy(order, true);
    if (traces == Traces::kNone && !order.planned->program) worker.job.trace_path.clear();
  };
  const auto report = run_memory(order, runner, listener, prepare);
  tidy(order, false);
  if (report.interrupted) return std::nullopt;
  result.wall_ns = report.wall_ns;
  if (report.result.status == Status::kHostFailure)
    take_host_failure(report.result.reason, result);
  else
    take_memory(order, report, result);
  return result;
}

// An emulated card can be as large as the case asks for: run it again and see. False: interrupted.
bool find_needed_bytes(const CaseOrder& order, Runner& runner, const Listener& listener,
                       CaseResult& result) {
  if (result.status != Status::kOutOfMemory || !result.out_of_memory || order.planned->program)
    return true;
  const auto device = records::device_from(order.planned->spec.device);
  if (device.kind != records::DeviceKind::kEmulated) return true;
  const auto keep_trace_of_failure = [](WorkerOrder& worker) { worker.job.trace_path.clear(); };
  const auto report =
      run_memory(order, runner, listener, keep_trace_of_failure, {.limited = false});
  if (report.interrupted) return false;
  result.wall_ns += report.wall_ns;
  const auto& found = report.result;
  if (found.status == Status::kHostFailure)
    take_host_failure("while the memory was looked for that the case would need: " + found.reason,
                      result);
  else if (const auto& memory = found.memory) {
    result.out_of_memory->needed_bytes =
        memory->peak_reserved_bytes.value_or(memory->peak_allocated_bytes);
    result.out_of_memory->needed_allocated_bytes = memory->peak_allocated_bytes;
    if (result.emulation && found.emulation) result.emulation->verdict = found.emulation->verdict;
  }
  return true;
}

// A throughput worker that failed makes the case fail, but takes nothing from what the memory
// worker and earlier rounds measured.
void take_failure(const records::WorkerResult& found, std::int64_t round, std::int64_t rounds,
                  CaseResult& result) {
  const auto which = rounds > 1 ? fmt::format(" of round {} of {}", round + 1, rounds) : "";
  result.status = found.status;
  result.reason =
      fmt::format("in the throughput worker{} (memory was measured): {}", which, found.reason);
  result.throughput_reason = found.reason;
  if (found.out_of_memory) result.out_of_memory = found.out_of_memory;
}

// Empty: it can be timed. Of a run that is resumed, too: what its file says.
std::string no_times(const records::CaseSpec& spec) {
  const auto device = records::recorded_device(spec.device);
  return device.has_times ? facts_of(spec.kind).no_times : device.no_times;
}

std::string why_not_timed(const CaseResult& result, const planning::Request& request) {
  if (result.status != Status::kOk) return "the memory worker ended " + to_string(result.status);
  if (const auto why = no_times(result.spec); !why.empty()) return why;
  if (request.repetitions == 0) return "not asked for (--repetitions 0)";
  return kNotTimedYet;
}

}  // namespace

WorkerOrder make_order(const CaseOrder& order, JobMode mode, const Emulated& how) {
  const auto& spec = order.planned->spec;
  make_case_folder(order.run_directory, spec.slug);
  const auto memory = host_memory();
  const auto budget = memory_budget(order.request->memory_limit_bytes, memory);
  auto worker = make_worker(order, mode, how, budget);
  const auto& program = order.planned->program;
  worker.forked = mode == JobMode::kMemory && !program &&
                  records::device_from(spec.device).kind == records::DeviceKind::kEmulated;
  worker.timeout = std::chrono::seconds(
      program && program->timeout_s > 0 ? program->timeout_s : order.request->timeout_s);
  worker.rss_limit_bytes = resident_limit(budget, memory);
  return worker;
}

std::optional<CaseResult> measure_memory(const CaseOrder& order, Runner& runner,
                                         const Listener& listener) {
  const auto plugins = plugin_builds(*order.planned);
  auto result = run_once(order, runner, listener, Traces::kKept);
  if (!result || !find_needed_bytes(order, runner, listener, *result)) return std::nullopt;
  if (const auto why = replaced_since(plugins, *order.planned); !why.empty())
    take_host_failure(why, *result);
  result->plugins = plugins;
  result->throughput_reason = why_not_timed(*result, *order.request);
  return result;
}

std::optional<CaseResult> try_memory(const CaseOrder& order, Runner& runner,
                                     const Listener& listener) {
  return run_once(order, runner, listener, Traces::kNone);
}

bool has_times(const records::CaseSpec& spec) { return no_times(spec).empty(); }

bool is_to_be_timed(const CaseResult& result, const planning::Request& request) {
  return result.status == Status::kOk && has_times(result.spec) && request.repetitions > 0;
}

RoundEnd measure_round(const CaseOrder& order, RoundAt at, Runner& runner, const Listener& listener,
                       CaseResult& result) {
  const auto report = run_worker(order, JobMode::kThroughput, runner, listener);
  if (report.interrupted) return RoundEnd::kInterrupted;
  result.wall_ns += report.wall_ns;
  const auto& found = report.result;
  if (const auto why = replaced_since(result.plugins, *order.planned); !why.empty()) {
    result.throughput.reset();
    result.throughput_reason = why;
    return RoundEnd::kOver;
  }
  if (found.status != Status::kOk) {
    take_failure(found, at.round, order.request->repetitions, result);
    return RoundEnd::kOver;
  }
  if (!found.throughput) {
    result.throughput_reason = found.reason.empty() ? "the worker timed no step" : found.reason;
    return RoundEnd::kOver;
  }
  add_round(result.throughput, *found.throughput,
            {at.round, at.place, found.throughput->step_times_ns, report.other_busy_cores},
            result.spec);
  result.throughput_reason.clear();
  // Beside what the memory worker ran with: how fast the card was set to run.
  result.settings.insert(found.settings.begin(), found.settings.end());
  result.environment.insert(found.environment.begin(), found.environment.end());
  return RoundEnd::kTimed;
}

bool is_measured(const CaseResult& result) {
  return result.status != Status::kHostFailure || result.memory.has_value();
}

void forget_host_failure(CaseResult& result) {
  if (result.status != Status::kHostFailure || !is_measured(result)) return;
  result.status = Status::kOk;
  result.reason.clear();
  result.throughput_reason = kNotTimedYet;
}

CaseResult decided_case(const planning::PlannedCase& planned) {
  CaseResult result;
  result.spec = planned.spec;
  result.added_for = planned.added_for;
  result.status = planned.decided.value_or(Status::kUnsupported);
  result.reason = planned.reason;
  result.throughput_reason = "no process was started: " + to_string(result.status);
  if (!facts_of(result.spec.kind).has_promise) return result;
  result.equivalence = planned.promise;
  result.equivalence->verdict = "not_checked";
  result.equivalence->reason = result.throughput_reason;
  return result;
}

}  // namespace peakbench::launch
