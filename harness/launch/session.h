#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/equivalence_check.h"
#include "launch/rounds.h"
#include "launch/runner.h"
#include "planning/plan.h"
#include "records/case.h"
#include "records/job.h"
#include "records/run.h"

namespace peakbench::launch {

// The listener of a run.

class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void run_started(std::size_t /*to_run*/, std::size_t /*kept*/) {}
  virtual void worker_started(const Turn&) {}
  // `place`: which case's.
  virtual void worker_progress(std::size_t /*place*/, const records::Progress&) {}
  virtual void tick() {}  // every few milliseconds
  virtual void worker_ended(std::size_t /*place*/) {}
  virtual void warning(const std::string&) {}  // see Listener::warn
  // For a run on a scheduler's machines: submissions, and states of its tasks, which may be
  // repeated unchanged.
  virtual void note(const std::string&) {}
  virtual void tasks_state(const std::string&) {}
  // In the order of their places, and when run.json holds it. A case that failed or is not to be
  // timed: at once, or when those before it have ended. The others of a group: after its rounds.
  virtual void case_ended(std::size_t /*place*/, const records::CaseResult&) {}
};

// The initial record of a run: a new one, or the record in the folder that is to be continued.

class RunFolder;

struct OpenOptions {
  bool resume = false;       // keep the cases that the folder's run has ended
  bool overwrite = false;    // delete the folder's run first
  bool is_resumable = true;  // the user can pass --resume
  std::vector<std::string> command;
};

// Throws ConfigError if the folder contains a run (without resume and overwrite), a run of another
// plan (with resume), or other files. Throws RunFileError if its run.json cannot be read.
records::Run open_run(const planning::Plan& plan, const RunFolder& folder,
                      const OpenOptions& options);

// A run from its plan to its run.json: the order of workers. Its beginning is above, its record in
// run_book.h.
//
// Cases that are compared (a group: equal but for the stack) run their memory workers first, then
// they are timed in turn, round after round (rounds.h). Only one worker runs at a time, except
// memory workers on request: several on emulated cards, and one on each of several real cards.
// Timing never runs in parallel with anything.

class RunFolder;

struct SessionOptions : OpenOptions {
  std::size_t jobs = 1;        // memory workers at a time, on emulated or on several real cards
  std::string case_directory;  // of the files of cases; empty: the run's folder
  ParameterCount parameters = [](const std::string&) { return std::int64_t{0}; };
};

// True when no case of the plan can run: all were decided from manifests.
bool nothing_to_run(const planning::Plan& plan);

// Throws what open_run() does, and ConfigError when the folder cannot be written.
records::Run run_plan(const planning::Plan& plan, const RunFolder& folder,
                      const SessionOptions& options, Runner& runner, RunListener& listener);

}  // namespace peakbench::launch
