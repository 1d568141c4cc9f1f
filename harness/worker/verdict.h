// How far this process's figures can be relied on, by what the emulated card was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "result/job.h"
#include "result/verdict.h"

namespace peakbench::worker {

enum class Ended { kWell, kBadly };

// At the end of the steps or where they failed, whose peak that is. Absent where the process does
// not run on the stand-ins.
std::optional<result::Verdict> verdict(const result::Job& job, std::int64_t peak_allocated_bytes,
                                       Ended ended = Ended::kWell);

// What the reason of a failure says where another value may have led elsewhere; empty where all
// that decides was known.
std::string doubt_of_failure(const result::Verdict& verdict);

// What whoever computes values in this process allocates on the host is no part of the case.
void leave_out_own_work_of_values();

}  // namespace peakbench::worker
