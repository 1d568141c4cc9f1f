// Why figures of emulated cases are not exact, in one sentence for several of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "result/verdict.h"

namespace peakbench::analysis {

// Its first reason, or its first condition: the worst. Empty: it has none.
std::string main_reason(const result::Verdict& verdict);

// Which of these lacks the workspace with the least room; the first where none has a room. There is
// one at least.
std::size_t tightest(const std::vector<const result::Verdict*>& verdicts);

}  // namespace peakbench::analysis
