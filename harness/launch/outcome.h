#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/process.h"
#include "records/job.h"

namespace peakbench::launch {

// Where a worker was when a signal ended it, as it says itself.

struct CrashSite {
  std::string path, plugin;  // the library and the id in it; empty: no plugin's code was known
  std::string call;          // "run"; empty where the signal came outside of the worker's calls
  std::string place;         // "step 2 of 3, forward"; empty before the first step
  std::vector<std::string> frames;  // the innermost first, from the plugin's own on
};

// Throws if the JSON is no such line. A plugin can write such a line, too, so texts are bounded.
CrashSite crash_site_from_json(const nlohmann::json& json);

// For the middle of a sentence: " in PATH: ID, in run, step 2 of 3, forward; at Sgd::update()
// (sgd.so+0x12ab), ...".
std::string in_words(const CrashSite& site);

// From how a worker process ended to the outcome of a case: pure functions.

// Everything that is known after a worker has ended.
struct Evidence {
  process::ProcessEnd end;
  std::optional<records::WorkerResult> written;  // the result file, where it could be read
  std::string read_problem;                      // why not, where there was a file
  std::string read_error;                        // the same, where the system could not read it
  std::string host_failure;                      // the machine's failure that the worker reported
  std::string log_tail;                          // see log_tail()
  std::string log_name = "worker.log";           // whose tail that is
  std::optional<records::Progress> last;         // the last progress seen
  std::optional<CrashSite> crash;                // of a signal, as reported by the worker
  bool kernel_ran_out = false;  // the kernel ended some process for want of memory meanwhile
  std::int64_t timeout_s = 0;
  std::int64_t rss_limit_bytes = 0;
  bool is_program = false;  // a user's program, run by a worker of ours
  // The case's device is the CPU: where the machine's memory ran out, so did the device's.
  bool memory_is_device = true;
};

// Determines the outcome. A program's failure has the last lines that it printed. A crash keeps
// what was measured before it.
//
// The outcome is host_failure if the machine failed:
//
// - The worker could not be started or loaded, or reports a failure of the machine.
// - It was ended from outside, or by a limit of the system.
// - Its result cannot be read.
records::WorkerResult outcome(const Evidence& evidence);

// "SIGSEGV (segmentation fault)".
std::string signal_name(int number);

// The last lines of the output, shortened to one line. Leaves out a backtrace that the worker wrote
// at its end, and torchrun's report of a failed process.
std::string log_tail(const std::string& printed);

// How often the kernel has ended a process for want of memory since it started; 0 where it does not
// say.
std::int64_t kernel_memory_kills();

}  // namespace peakbench::launch
