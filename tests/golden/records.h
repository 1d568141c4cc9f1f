// Runs as records, for report tests: no measuring, no files, every number chosen.
#pragma once

#include "result/run.h"

namespace peakbench::golden {

result::Run
tutorial_run();  // two models on the CPU: seven outcomes, published figures, all columns
result::Run emulated_run();  // an emulated card's cases beside a CPU's: reserved bytes, workspaces,
                             // out of memory
result::Run cards_run();     // two real cards and the CPU: pinned memory, reserved bytes, promises
                             // claimed, held as another stack's and broken by NaN, no effect
result::Run hostile_run();   // names with markup, quotes, emoji, control characters, 300 characters
result::Run interrupted_run();  // nothing has ended, two are pending
result::Run many_cases(int count);

}  // namespace peakbench::golden
