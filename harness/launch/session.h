// A run from its plan to its run.json: the order of workers. How it begins is in open_run.h, what
// is kept of it in run_book.h.
//
// Cases that are compared (a group: equal but for the stack) have their memory workers first, then
// take turns at being timed, round after round (rounds.h). One worker at a time, but for memory
// workers, where that is asked for: of these several on emulated cards, and one on each of several
// real cards. Nothing is timed beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "launch/open_run.h"
#include "launch/reference_checkpoint.h"
#include "launch/run_listener.h"
#include "launch/runner.h"
#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::launch {

class RunFolder;

struct SessionOptions : OpenOptions {
  std::size_t jobs = 1;        // memory workers at a time, on emulated or on several real cards
  std::string case_directory;  // of the files of cases; empty: the run's folder
  ParameterCount parameters = [](const std::string&) { return std::int64_t{0}; };
};

// True when no case of the plan can run: all were decided from manifests.
bool nothing_to_run(const plan::Plan& plan);

// Throws what open_run() does, and ConfigError when the folder cannot be written.
result::Run run_plan(const plan::Plan& plan, const RunFolder& folder, const SessionOptions& options,
                     Runner& runner, RunListener& listener);

}  // namespace peakbench::launch
