#include "executor/outcomes.h"

#include "result/device.h"

namespace peakbench::executor {
namespace {

using result::Status;

Status status_of(EndedBy by, const result::CaseSpec& spec) {
  switch (by) {
    case EndedBy::kTimeLimit:
      return Status::kTimeout;
    case EndedBy::kMemory:
      return result::recorded_device(spec.device).is_host_memory ? Status::kOutOfMemory
                                                                 : Status::kHostFailure;
    case EndedBy::kFailures:
      break;
  }
  return Status::kHostFailure;
}

}  // namespace

result::CaseResult ended_by(EndedBy by, const std::string& words, result::CaseResult known) {
  known.status = status_of(by, known.spec);
  known.reason = known.memory ? words + " (memory was measured)" : words;
  if (!known.throughput || known.status != Status::kOk) known.throughput_reason = words;
  if (!known.memory && known.equivalence) {
    known.equivalence->verdict = "not_checked";
    known.equivalence->reason = "the case ended " + to_string(known.status);
  }
  return known;
}

}  // namespace peakbench::executor
