#include "launch/case.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "files/file.h"
#include "launch/device_environment.h"
#include "launch/host.h"
#include "launch/throughput.h"
#include "result/device.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using result::CaseResult;
using result::JobMode;
using result::Status;

constexpr const char* kNotTimedYet = "interrupted before the throughput was measured";

std::string mode_name(JobMode mode) { return mode == JobMode::kMemory ? "memory" : "throughput"; }

std::string trace_path(const result::CaseSpec& spec) {
  return "cases/" + spec.slug + "/trace.sqlite";
}

result::Job make_job(const CaseOrder& order, JobMode mode, const fs::path& folder,
                     std::int64_t budget_bytes) {
  const auto& planned = *order.planned;
  const auto& request = *order.request;
  result::Job job;
  static_cast<result::Setting&>(job) = planned.spec;
  job.mode = mode;
  job.case_id = planned.spec.id;
  job.model_plugin = planned.model;
  job.strategy_plugins = planned.strategies;
  job.steps = request.steps;
  job.threads = request.threads;
  job.memory_limit_bytes = budget_bytes;
  job.result_path = folder / (mode_name(mode) + ".result.json");
  // The peak is over the first steps: what a step allocates for the first time belongs to it.
  job.warmup = mode == JobMode::kMemory ? 0 : request.warmup;
  if (mode != JobMode::kMemory) return job;
  job.trace_path = fs::absolute(order.run_directory) / trace_path(planned.spec);
  job.write_parameters_path = order.checkpoint.write_path;
  job.read_parameters_path = order.checkpoint.read_path;
  job.promise = planned.promise;
  job.promise.reference_case = order.checkpoint.reference_case;
  return job;
}

// What an earlier attempt left must not be taken for this one's.
void remove_leftovers(const WorkerOrder& order) {
  files::remove_file(order.log_path);
  files::remove_file(order.job.trace_path);
  files::remove_file(fs::path(order.job.trace_path).replace_filename("snapshot.pickle").string());
}

// The worker knows what it compared; what was promised, and why there was nothing to compare with,
// is known here.
result::Equivalence equivalence(const CaseOrder& order,
                                const std::optional<result::Equivalence>& found) {
  result::Equivalence result = found.value_or(result::Equivalence{});
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

void take_memory(const CaseOrder& order, const WorkerReport& report, CaseResult& result) {
  const auto& found = report.result;
  result.status = found.status;
  result.reason = found.reason;
  result.memory = found.memory;
  result.out_of_memory = found.out_of_memory;
  result.emulation = found.emulation;
  result.losses = found.losses;
  result.settings = found.settings;
  result.environment = found.environment;
  result.equivalence = equivalence(order, found.equivalence);
  if (result.equivalence->verdict == "not_checked" && result.equivalence->reason.empty())
    result.equivalence->reason = "the case ended " + to_string(found.status);
  result::Rank rank;
  if (result.memory) {
    result.memory->worker_peak_rss_bytes = report.peak_rss_bytes;
    rank.memory = result.memory;
  }
  if (files::is_there((fs::path(order.run_directory) / trace_path(result.spec)).string()))
    rank.trace = trace_path(result.spec);
  result.ranks = {rank};
}

// A worker whose files cannot be made is an outcome of its case as one that cannot be started is.
WorkerReport run_worker(const CaseOrder& order, JobMode mode, Runner& runner,
                        const Listener& listener,
                        const std::function<void(WorkerOrder&)>& prepare = {}) {
  WorkerReport report;
  report.result.status = Status::kHostFailure;
  try {
    auto worker = make_order(order, mode);
    if (prepare) prepare(worker);
    return runner.run(worker, listener);
  } catch (const HostError& error) {
    report.result.reason = error.what();
  } catch (const fs::filesystem_error& error) {
    report.result.reason = fmt::format("{}{}", error.what(), host_advice(error.code().value()));
  }
  return report;
}

void take_host_failure(const std::string& reason, CaseResult& result) {
  const auto spec = result.spec;
  const auto added_for = result.added_for;
  const auto wall_ns = result.wall_ns;
  result = CaseResult{};
  result.spec = spec;
  result.added_for = added_for;
  result.wall_ns = wall_ns;
  result.status = Status::kHostFailure;
  result.reason = reason;
}

// An emulated card can be as large as the case asks for: run it again and see. False: interrupted.
bool find_needed_bytes(const CaseOrder& order, Runner& runner, const Listener& listener,
                       CaseResult& result) {
  if (result.status != Status::kOutOfMemory || !result.out_of_memory) return true;
  const auto device = result::device_from(order.planned->spec.device);
  if (device.kind != result::DeviceKind::kEmulated) return true;
  const auto report =
      run_worker(order, JobMode::kMemory, runner, listener, [&](WorkerOrder& worker) {
        worker.environment = unlimited_environment_for(device);
        worker.job.trace_path.clear();  // the trace of the failure stays
      });
  if (report.interrupted) return false;
  result.wall_ns += report.wall_ns;
  if (report.result.status == Status::kHostFailure)
    take_host_failure(
        "while the memory was looked for that the case would need: " + report.result.reason,
        result);
  else if (const auto& memory = report.result.memory)
    result.out_of_memory->needed_bytes =
        memory->peak_reserved_bytes.value_or(memory->peak_allocated_bytes);
  return true;
}

// A throughput worker that failed makes the case fail, but takes nothing from what the memory
// worker and earlier rounds measured.
void take_failure(const WorkerReport& report, std::int64_t round, std::int64_t rounds,
                  CaseResult& result) {
  const auto& found = report.result;
  const auto which = rounds > 1 ? fmt::format(" of round {} of {}", round + 1, rounds) : "";
  result.status = found.status;
  result.reason =
      fmt::format("in the throughput worker{} (memory was measured): {}", which, found.reason);
  result.throughput_reason = found.reason;
  if (found.out_of_memory) result.out_of_memory = found.out_of_memory;
}

// Of a run that is resumed, too: what its file says.
result::Device device_of(const CaseResult& result) {
  return result::recorded_device(result.spec.device);
}

std::string why_not_timed(const CaseResult& result, const plan::Request& request) {
  if (result.status != Status::kOk) return "the memory worker ended " + to_string(result.status);
  if (const auto device = device_of(result); !device.has_times) return device.no_times;
  if (request.repetitions == 0) return "not asked for (--repetitions 0)";
  return kNotTimedYet;
}

}  // namespace

WorkerOrder make_order(const CaseOrder& order, JobMode mode) {
  const auto folder = fs::absolute(order.run_directory) / "cases" / order.planned->spec.slug;
  files::make_folder(folder.string());
  const auto memory = host_memory();
  const auto budget = memory_budget(order.request->memory_limit_bytes, memory);
  WorkerOrder worker;
  worker.job = make_job(order, mode, folder, budget);
  worker.job_path = folder / (mode_name(mode) + ".job.json");
  worker.log_path = folder / "worker.log";
  const auto device = result::device_from(order.planned->spec.device);
  worker.environment = environment_for(device);
  worker.forked = mode == JobMode::kMemory && device.kind == result::DeviceKind::kEmulated;
  worker.timeout = std::chrono::seconds(order.request->timeout_s);
  worker.rss_limit_bytes = resident_limit(budget, memory);
  return worker;
}

std::optional<CaseResult> measure_memory(const CaseOrder& order, Runner& runner,
                                         const Listener& listener) {
  CaseResult result;
  result.spec = order.planned->spec;
  result.added_for = order.planned->added_for;
  const auto report = run_worker(order, JobMode::kMemory, runner, listener, remove_leftovers);
  if (report.interrupted) return std::nullopt;
  result.wall_ns = report.wall_ns;
  if (report.result.status == Status::kHostFailure)
    take_host_failure(report.result.reason, result);
  else
    take_memory(order, report, result);
  if (!find_needed_bytes(order, runner, listener, result)) return std::nullopt;
  result.throughput_reason = why_not_timed(result, *order.request);
  return result;
}

bool is_to_be_timed(const CaseResult& result, const plan::Request& request) {
  return result.status == Status::kOk && device_of(result).has_times && request.repetitions > 0;
}

RoundEnd measure_round(const CaseOrder& order, RoundAt at, Runner& runner, const Listener& listener,
                       CaseResult& result) {
  const auto report = run_worker(order, JobMode::kThroughput, runner, listener);
  if (report.interrupted) return RoundEnd::kInterrupted;
  result.wall_ns += report.wall_ns;
  const auto& found = report.result;
  if (found.status != Status::kOk) {
    take_failure(report, at.round, order.request->repetitions, result);
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

CaseResult decided_case(const plan::PlannedCase& planned) {
  CaseResult result;
  result.spec = planned.spec;
  result.added_for = planned.added_for;
  result.status = planned.decided.value_or(Status::kUnsupported);
  result.reason = planned.reason;
  result.throughput_reason = "no process was started: " + to_string(result.status);
  result.equivalence = planned.promise;
  result.equivalence->verdict = "not_checked";
  result.equivalence->reason = result.throughput_reason;
  return result;
}

}  // namespace peakbench::launch
