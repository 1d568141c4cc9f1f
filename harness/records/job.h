// What `peakbench` hands to `peakbench-worker`, and what it gets back.
//
// The launcher writes a Job as JSON and starts `peakbench-worker JOB.json`, or for a program
// `peakbench __program JOB.json`. The worker reports progress as one JSON object a line on the file
// descriptor named by PEAKBENCH_PROGRESS_FD (absent: none), writes WorkerResult to `result_path`
// atomically, and exits 0 whenever it wrote one, whatever the outcome. What the machine did to it,
// a full disk among them, needs no disk to be told:
// {"host_failure": REASON} as a line of progress, and exit code kHostFailureExit. No result file
// and another exit: crashed. stdout and stderr of the worker go to cases/SLUG/worker.log.
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
// Of a worker that a signal ended: {"crash": {"path", "plugin", "call", "place", "frames"}} as a
// line of progress, written by the signal's handler (worker/fatal_signal.h), and in the log a line
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
