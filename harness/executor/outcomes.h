// What became of a case whose task the scheduler ended. Pure.
#pragma once

#include <string>

#include "result/case.h"

namespace peakbench::executor {

enum class EndedBy { kTimeLimit, kMemory, kFailures };

// The case's row; `known`: what was measured of it before. On the CPU, memory of the machine is the
// device's; elsewhere its lack says nothing of the case.
result::CaseResult ended_by(EndedBy by, const std::string& words, result::CaseResult known);

}  // namespace peakbench::executor
