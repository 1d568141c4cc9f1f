// The folder of one attempt at a task, and the attempts beside it. A scheduler begins a task again
// when it has given up the machine that had it. That machine may be dead, and its lock on a file
// system over a network never be given back; or it is cut off from the scheduler alone, and works.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "executor/submission_files.h"
#include "launch/run_folder.h"
#include "result/run.h"

namespace peakbench::executor {

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
  std::optional<result::Run> newest_run() const;

 private:
  const SubmissionFiles& files_;
  std::size_t task_;
  int attempt_;
  std::optional<launch::RunFolder> folder_;
};

}  // namespace peakbench::executor
