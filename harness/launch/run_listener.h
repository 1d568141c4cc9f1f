// Who is told while a run goes on.
#pragma once

#include <cstddef>
#include <string>

#include "launch/turn.h"
#include "result/case.h"
#include "result/job.h"

namespace peakbench::launch {

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
  // Of a run on the machines of a scheduler: what was submitted; how its tasks stand, which may be
  // said again unchanged.
  virtual void note(const std::string&) {}
  virtual void tasks_state(const std::string&) {}
  // In the order of their places, and when run.json holds it. A case that failed or is not to be
  // timed: at once, or when those before it have ended. The others of a group: after its rounds.
  virtual void case_ended(std::size_t place, const result::CaseResult& result) = 0;
};

}  // namespace peakbench::launch
