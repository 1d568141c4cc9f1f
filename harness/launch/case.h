// Runs one planned case: its memory worker, then its throughput workers, each a process of its own.
#pragma once

#include <optional>
#include <string>

#include "launch/runner.h"
#include "plan/plan.h"
#include "result/case.h"

namespace peakbench::launch {

// Where the losses and parameters for the equivalence check come from or go to; paths empty: no
// check.
struct HandOver {
  std::string write_path, read_path;
  std::string reference_case;
  std::string reason;  // why there is no check, where there is none
};

struct CaseOrder {
  const plan::PlannedCase* planned = nullptr;
  const plan::Request* request = nullptr;
  std::string run_directory;
  HandOver hand_over;
  // What an interrupted run measured already: only the throughput is missing.
  std::optional<result::CaseResult> measured;
};

struct CaseEnd {
  result::CaseResult result;
  bool interrupted = false;   // by Ctrl-C
  bool worth_keeping = true;  // false: interrupted before anything was measured
  nlohmann::json environment = nlohmann::json::object();  // what the worker says of where it ran
};

struct CaseListener {
  // Which worker is at work, and its progress.
  std::function<void(result::JobMode, const result::Progress&)> progress;
  std::function<void()> tick;
};

// One worker's job, its log and its limits; makes the case's folder. Memory: as it is now.
WorkerOrder make_order(const CaseOrder& order, result::JobMode mode);

CaseEnd run_case(const CaseOrder& order, Runner& runner, const CaseListener& listener);

// The row of a case that was decided from manifests alone.
result::CaseResult decided_case(const plan::PlannedCase& planned);

}  // namespace peakbench::launch
