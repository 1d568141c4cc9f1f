// The workers of one planned case (runner.h): one for memory, then one for each round of timing.
// When each runs is decided in session.cpp.
#pragma once

#include <optional>
#include <string>

#include "launch/runner.h"
#include "launch/worker_environment.h"
#include "planning/plan.h"
#include "records/case.h"

namespace peakbench::launch {

// Where the losses and parameters for the equivalence check come from or go to; paths empty: no
// check.
struct ReferenceCheckpoint {
  std::string write_path, read_path;
  std::string reference_case;
  std::string reason;  // why there is no check; else empty
};

struct CaseOrder {
  const planning::PlannedCase* planned = nullptr;
  const planning::Request* request = nullptr;
  std::string run_directory;
  ReferenceCheckpoint checkpoint;
};

// The worker's job, log and limits; makes the case's folder. Memory: as it is now.
WorkerOrder make_order(const CaseOrder& order, records::JobMode mode, const Emulated& how = {});

// Results of the memory workers. If a case did not fit its emulated card, they contain the memory
// that it would have needed. Nullopt: interrupted before all was measured. A case that is still to
// be timed has a `throughput_reason`, in case it never is.
std::optional<records::CaseResult> measure_memory(const CaseOrder& order, Runner& runner,
                                                  const Listener& listener);

// The memory workers once, and nothing after it: no trace is kept (a program's is), and what the
// case would have needed is not looked for. nullopt: interrupted.
std::optional<records::CaseResult> try_memory(const CaseOrder& order, Runner& runner,
                                              const Listener& listener);

// Both its kind and its device can be timed.
bool has_times(const records::CaseSpec& spec);

// True for a case whose rounds are to be measured: its memory worker ended ok, it can be timed, and
// throughput was asked for.
bool is_to_be_timed(const records::CaseResult& result, const planning::Request& request);

enum class RoundEnd {
  kTimed,
  kOver,         // the worker failed, and so did the case; or it timed no step
  kInterrupted,  // by Ctrl-C; `result` is as it was
};

// Which round, and the case's place in it; both from 0.
struct RoundAt {
  std::int64_t round = 0, place = 0;
};

// One throughput worker: adds its round to `result`.
RoundEnd measure_round(const CaseOrder& order, RoundAt at, Runner& runner, const Listener& listener,
                       records::CaseResult& result);

// False: the machine failed its memory worker, and nothing is known of the case.
bool is_measured(const records::CaseResult& result);

// A case that the machine failed while it was timed, as it was before: its memory and the rounds
// that it has. Others are left as they are.
void forget_host_failure(records::CaseResult& result);

// The row of a case that was decided from manifests alone.
records::CaseResult decided_case(const planning::PlannedCase& planned);

}  // namespace peakbench::launch
