// Two builds timed in turn (`peakbench ab`): what was measured. Plain records; whether one build is
// slower is judged from them (reports/ab).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peakbench::result {

inline constexpr const char* kAbFile = "ab.json";

struct AbPair {
  bool base_first = true;
  std::vector<std::int64_t> base_ns, now_ns;  // every timed step, in order
};

struct AbCase {
  std::string id, new_id;  // the same, unless NEW was given other strategies
  std::vector<AbPair> pairs;
  std::string problem;  // why there are fewer than asked for
};

struct AbRun {
  std::string base, now;  // the builds' folders
  std::string created;    // RFC 3339, UTC
  std::vector<std::string> command;
  nlohmann::json environment = nlohmann::json::object();
  std::int64_t pairs = 0, steps = 0, warmup = 0, threads = 0;
  std::uint64_t seed = 0;
  std::vector<AbCase> cases;
};

}  // namespace peakbench::result
