#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "cluster/submission_files.h"
#include "launch/run_folder.h"
#include "launch/runner.h"
#include "planning/worker.h"
#include "records/run.h"

namespace peakbench::cluster {

// The folder of one attempt at a task, and the attempts next to it. A scheduler begins a task again
// when it has given up its machine. That machine may be dead, and its lock on a network file system
// may never be released; or it only lost the scheduler, and still works.

class AttemptFolder {
 public:
  // Makes it, which tells earlier attempts to end. Throws HostError where it cannot be made.
  // `files` must outlive it.
  AttemptFolder(const SubmissionFiles& files, std::size_t task, int attempt);

  // Whether no later attempt has begun: else this one is to end.
  bool is_last() const;

  // Takes the folder, and waits until those before this one have given theirs back: `patience` at
  // most, as one that is dead never does. Less at a Ctrl-C. Throws HostError where a process of the
  // same attempt holds it.
  const launch::RunFolder& take(std::chrono::milliseconds patience);

  // Of this attempt or the last one before it that has one: what is gone on with.
  std::optional<records::Run> newest_run() const;

 private:
  const SubmissionFiles& files_;
  std::size_t task_;
  int attempt_;
  std::optional<launch::RunFolder> folder_;
};

// One task of a submission, on the machine that a scheduler gave it.

struct WorkOptions {
  std::string submission;  // RUN/queue/N
  std::size_t task = 0;
  std::size_t jobs = 1;  // memory workers on emulated cards at a time
  int attempt = 0;       // how often the scheduler has begun it before
  std::string node;      // this machine, as the scheduler calls it
  // How long an earlier attempt may take to end. Longer than the delay until a network file system
  // shows it that a later attempt exists (acdirmax of NFS: 60 s).
  std::chrono::milliseconds patience{90'000};
};

// Worker and runner, chosen when the task has begun, so that their errors are recorded with its
// end.
struct Hands {
  std::function<planning::Worker()> worker;
  std::function<std::unique_ptr<launch::Runner>(const planning::Plan&)> runner;
};

// Measures the task's cases, continuing from an earlier attempt's results. Stops cleanly at a
// signal (launch/interrupt.h) and when a later attempt begins. The results are in the submission's
// folder. True: all is measured. Throws ConfigError if it cannot begin, and records that there,
// too, if possible.
bool work(const WorkOptions& options, const Hands& hands, std::ostream& log);

}  // namespace peakbench::cluster
