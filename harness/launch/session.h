// A run from its plan to its run.json: the folder, the order of workers, resuming, and writing
// after each worker.
//
// Cases that are compared (a group: equal but for the stack) have their memory workers first, then
// take turns at being timed, round after round (rounds.h). One worker at a time, but for memory
// workers on emulated cards, which nothing of is timed: of these several, where that is asked for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/reference_checkpoint.h"
#include "launch/runner.h"
#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::launch {

class RunFolder;

struct SessionOptions {
  bool resume = false;     // keep the cases that the folder's run has ended
  bool overwrite = false;  // delete the folder's run first
  std::size_t jobs = 1;    // memory workers at a time, on emulated cards
  std::vector<std::string> command;
  ParameterCount parameters = [](const std::string&) { return std::int64_t{0}; };
};

// A worker that is about to run, and what is left to do. `place` counts the cases in the order they
// run, from 0.
struct Turn {
  std::size_t place = 0;
  std::string case_id;
  result::JobMode mode = result::JobMode::kMemory;
  std::int64_t round = 0, rounds = 0;  // throughput: 0-based, of so many
  std::size_t group_size = 0;          // throughput: cases that take turns in a round
  // Workers of each kind still to run, this one included, should all go well.
  std::size_t memory_workers = 0, throughput_workers = 0;
};

// What is told while a run goes on.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void run_started(std::size_t to_run, std::size_t kept) = 0;
  virtual void worker_started(const Turn& turn) = 0;
  // `place`: which case's.
  virtual void worker_progress(std::size_t place, const result::Progress& progress) = 0;
  virtual void tick() {}  // every few milliseconds
  virtual void worker_ended(std::size_t /*place*/) {}
  virtual void warning(const std::string&) {}  // see Listener::warn
  // In the order of their places, and when run.json holds it. A case that failed or is not to be
  // timed: at once, or when those before it have ended. The others of a group: after its rounds.
  virtual void case_ended(std::size_t place, const result::CaseResult& result) = 0;
};

// True when no case of the plan can run: all were decided from manifests.
bool nothing_to_run(const plan::Plan& plan);

// Throws ConfigError when the folder cannot be written, holds a run (without resume and overwrite),
// or holds another run than this plan's (with resume); RunFileError when its run.json cannot be
// read.
result::Run run_plan(const plan::Plan& plan, const RunFolder& folder, const SessionOptions& options,
                     Runner& runner, RunListener& listener);

}  // namespace peakbench::launch
