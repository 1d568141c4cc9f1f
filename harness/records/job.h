// The interface between `peakbench` and `peakbench-worker`.
//
// 1. The launcher writes a Job as JSON and starts `peakbench-worker JOB.json`, or for a program
//    `peakbench __program JOB.json`.
// 2. The worker reports progress, a JSON object a line, on the file descriptor named by
//    PEAKBENCH_PROGRESS_FD (if it is set).
// 3. The worker writes WorkerResult to `result_path` atomically. If that succeeds, it exits with 0,
//    whatever the outcome.
// 4. If the machine failed (a full disk, for example), it needs no disk to report it: it writes
//    {"host_failure": REASON} as a line of progress and exits with kHostFailureExit.
//
// Any other exit without a result file is a crash. stdout and stderr of the worker go to
// cases/SLUG/worker.log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"

namespace peakbench::records {

// EX_TEMPFAIL of sysexits.h. It counts with the line of progress only.
inline constexpr int kHostFailureExit = 75;
inline constexpr const char* kHostFailureKey = "host_failure";
// For a worker that a signal ended: {"crash": {"path", "plugin", "call", "place", "frames"}} as a
// line of progress, written by the signal's handler (worker/fatal_signal.h). The log has a line
// that begins with kCrashMark, before the backtrace.
inline constexpr const char* kCrashKey = "crash";
inline constexpr const char* kCrashMark = "peakbench-worker: ended by SIG";

enum class JobMode { kMemory, kThroughput };

struct PluginUse {
  Selection selection;
  nlohmann::json options = nlohmann::json::object();  // complete: defaults filled in, validated
  std::string path;                                   // the shared library
};

// A program of a suite, its placeholders filled.
struct ProgramCommand {
  std::vector<std::string> arguments;  // [0]: the program; no shell reads them
  std::map<std::string, std::string> environment;
  std::string folder;          // absolute: where it is started
  std::string typed_folder;    // as the suite has it; empty: the suite's own
  std::int64_t timeout_s = 0;  // 0: the run's
};

struct Job : Setting {
  JobMode mode = JobMode::kMemory;
  std::string case_id;
  // What the setting's model and strategies are made with: `baseline` first, always; then the rest
  // in canonical order.
  PluginUse model_plugin;
  std::vector<PluginUse> strategy_plugins;
  std::int64_t steps = 3, warmup = 1;
  std::int64_t memory_limit_bytes = 0;  // CPU budget; 0 = none
  std::int64_t threads = 0;             // 0 = LibTorch's default
  std::string assume;                   // of sizes on an emulated card: as in planning::Request
  std::int64_t second_guesses = 0;      // of a program: as in planning::Request
  std::string result_path, trace_path;
  // Losses and parameters after the last step, for the equivalence check: the reference case
  // writes, the others read.
  std::string write_parameters_path, read_parameters_path;
  Equivalence
      promise;  // promise, tolerance and reference_case of the stack; the worker adds the verdict
  // Of a kind without plugins: the worker is `peakbench __program JOB.json`.
  std::optional<ProgramCommand> program;
};

// One line of progress. `phase`: load | build | forward | backward | optimizer_step | write.
struct Progress {
  std::string phase;
  std::int64_t step = 0, steps = 0;  // 0-based; steps includes warm-up
  std::int64_t allocated_bytes = 0, peak_bytes = 0;
};

nlohmann::json to_json(const Job& job);
Job job_from_json(const nlohmann::json& json);
nlohmann::json to_json(const WorkerResult& result);
WorkerResult worker_result_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Progress& progress);
Progress progress_from_json(const nlohmann::json& json);

}  // namespace peakbench::records
