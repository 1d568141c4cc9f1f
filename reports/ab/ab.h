// Two builds timed in turn (`peakbench ab`): whether NEW is slower, and how that is said.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/analysis/statistics.h"
#include "result/ab.h"

namespace peakbench::ab {

struct Judged {
  result::AbRun run;
  double margin = 0, false_alarms = 0;
  std::vector<statistics::SpeedDifference> differences;  // of the cases, in their order
};

// Each case by the ratio of the two processes' median steps in each pair.
Judged judge(result::AbRun run, double margin, double false_alarms);

inline constexpr const char* kAbSchemaVersion = "1.0.0";
nlohmann::ordered_json to_json(const Judged& judged);  // fields: docs/compare.md
std::string to_text(const Judged& judged, int width);  // ends with a newline

// DIR/ab.json, whole or not at all. Throws ConfigError with the reason.
void write(const Judged& judged, const std::string& folder);

}  // namespace peakbench::ab
