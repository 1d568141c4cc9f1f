// One task of a submission, on the machine that a scheduler gave it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "launch/runner.h"
#include "manifest/worker.h"

namespace peakbench::executor {

struct WorkOptions {
  std::string submission;  // RUN/queue/N
  std::size_t task = 0;
  std::size_t jobs = 1;  // memory workers on emulated cards at a time
  int attempt = 0;       // how often the scheduler has begun it before
  std::string node;      // this machine, as the scheduler calls it
  // How long an attempt before this one may take to end; more than a file system over a network
  // takes to show it that it is not the last one (acdirmax of NFS: 60 s).
  std::chrono::milliseconds patience{90'000};
};

// Who measures: chosen when the task has begun, so that what is thrown stands with its end.
struct Hands {
  std::function<manifest::Worker()> worker;
  std::function<std::unique_ptr<launch::Runner>(const plan::Plan&)> runner;
};

// Measures what the task's order says, going on from an earlier attempt's results; stops cleanly at
// a signal (launch/interrupt.h) and when a later attempt begins. What it did stands in the
// submission's folder. True: all is measured. Throws ConfigError where it cannot begin, which
// stands there too if it can be written.
bool work(const WorkOptions& options, const Hands& hands, std::ostream& log);

}  // namespace peakbench::executor
