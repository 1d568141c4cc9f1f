// Two builds timed in turn, from what was asked to what was measured: both opened and paired, then
// each case's pairs of processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ab/build.h"
#include "ab/pairs.h"
#include "result/ab.h"

namespace peakbench::ab {

struct Order {
  BuildOrder base, now;
  std::int64_t pairs = 0;
  std::uint64_t seed = 0;            // decides which of a pair goes first
  std::string folder;                // of ab.json and the logs
  std::vector<std::string> command;  // argv as typed, for the record
};

struct Builds {
  Build base, now;
};

// As open_build() and check_pairs() say.
Builds open_builds(const Order& order, const std::function<void(const std::string&)>& left_out);

struct Measured {
  result::AbRun run;
  bool interrupted = false;  // by Ctrl-C; `run` has what was measured
};

// Makes the folder first (folder.h). `done` is told of each pair as it ends: its number in its
// case, from 1 on.
Measured measure(const Order& order, const Builds& builds,
                 const std::function<void(std::int64_t, const Pair&)>& done);

}  // namespace peakbench::ab
