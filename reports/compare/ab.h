// Two builds timed in turn (`peakbench ab`): what was measured and what it says. Plain records.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/analysis/statistics.h"

namespace peakbench::compare {

using statistics::SpeedVerdict;

struct AbPair {
  bool base_first = true;
  std::vector<std::int64_t> base_ns, now_ns;  // every timed step, in order
};

struct AbCase {
  std::string id, new_id;  // the same, unless NEW was given other strategies
  std::vector<AbPair> pairs;
  std::string problem;  // why there are fewer than asked for
  SpeedVerdict verdict;
};

struct AbResult {
  std::string base, now;  // the builds' folders
  std::string created;    // RFC 3339, UTC
  std::vector<std::string> command;
  nlohmann::json environment = nlohmann::json::object();
  std::int64_t pairs = 0, steps = 0, warmup = 0, threads = 0;
  std::uint64_t seed = 0;
  double margin = 0, false_alarms = 0;
  std::vector<AbCase> cases;
};

// By the ratio of the two processes' median steps in each pair.
SpeedVerdict judge(const std::vector<AbPair>& pairs, double margin, double false_alarms);

inline constexpr const char* kAbSchemaVersion = "1.0.0";
nlohmann::ordered_json to_json(const AbResult& result);  // fields: docs/compare.md
std::string to_text(const AbResult& result, int width);  // ends with a newline

}  // namespace peakbench::compare
