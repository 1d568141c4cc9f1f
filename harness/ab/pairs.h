// Two builds timed in turn: pairs of throughput workers, each pair in an order of its own, so that
// what the machine does meanwhile meets both alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/case.h"

namespace peakbench::ab {

struct PairSide {
  launch::CaseOrder order;  // a run_directory of its own
  launch::Runner* runner = nullptr;
};

struct Pair {
  bool base_first = true;
  result::Throughput base, now;
};

struct PairsOrder {
  PairSide base, now;
  std::int64_t pairs = 0;
  std::uint64_t seed = 0;  // decides which of a pair goes first
};

struct PairsEnd {
  std::vector<Pair> pairs;  // whole ones
  // Which side ended otherwise than ok and why; the pairs before it are kept.
  std::string problem;
  bool interrupted = false;
};

// `done` is told of each pair as it ends.
PairsEnd run_pairs(const PairsOrder& order, const std::function<void(const Pair&)>& done);

// The order of `count` pairs: true where BASE goes first. The same on every machine; as many one
// way as the other, or one more.
std::vector<bool> base_first_order(std::int64_t count, std::uint64_t seed);

}  // namespace peakbench::ab
