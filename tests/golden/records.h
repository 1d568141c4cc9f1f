// Runs as records, for report tests: no measuring, no files, every number chosen.
#pragma once

#include "records/run.h"

namespace peakbench::golden {

records::Run
tutorial_run();  // two models on the CPU: seven outcomes, published figures, all columns
records::Run emulated_run();  // an emulated card's cases beside a CPU's: reserved bytes,
                              // workspaces, out of memory
records::Run cards_run();     // two real cards and the CPU: pinned memory, reserved bytes, promises
                              // claimed, held as another stack's and broken by NaN, no effect
records::Run hostile_run();  // names with markup, quotes, emoji, control characters, 300 characters
records::Run interrupted_run();  // nothing has ended, two are pending
records::Run many_cases(int count);

}  // namespace peakbench::golden
