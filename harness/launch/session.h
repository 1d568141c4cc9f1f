// A run from its plan to its run.json: the folder, the order, resuming, and writing each case as it
// ends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/hand_over.h"
#include "launch/runner.h"
#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::launch {

struct SessionOptions {
  std::string directory;
  bool resume = false;     // keep the cases that the folder's run has ended
  bool overwrite = false;  // delete the folder's run first
  std::vector<std::string> command;
  ParameterCount parameters = [](const std::string&) { return std::int64_t{0}; };
};

// What is told while a run goes on. `place` counts the cases in the order they run, from 0.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void run_started(std::size_t to_run, std::size_t kept) = 0;
  virtual void case_started(std::size_t place, const plan::PlannedCase& planned) = 0;
  virtual void case_progress(result::JobMode mode, const result::Progress& progress) = 0;
  virtual void tick() {}  // every few milliseconds
  virtual void case_ended(std::size_t place, const result::CaseResult& result) = 0;
};

// True when no case of the plan can run: all were decided from manifests.
bool nothing_to_run(const plan::Plan& plan);

// Throws ConfigError when the folder cannot be written, holds a run (without resume and overwrite),
// or holds another run than this plan's (with resume); RunFileError when its run.json cannot be
// read.
result::Run run_plan(const plan::Plan& plan, const SessionOptions& options, Runner& runner,
                     Observer& observer);

}  // namespace peakbench::launch
