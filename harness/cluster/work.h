#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "launch/runner.h"
#include "planning/worker.h"

namespace peakbench::cluster {

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
