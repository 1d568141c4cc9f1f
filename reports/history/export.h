// Runs of a history as lines of JSON, and back: to keep them elsewhere, to join histories, to save
// what a damaged file still holds.
#pragma once

#include <string>
#include <vector>

#include "reports/history/history.h"

namespace peakbench::history {

// {"history_line": 1, "number", "added", "branch", "commit", "verdict", "note", "run": run.json,
// "parts"}: one line, without its newline.
std::string line_of(const History& history, const RunRow& run);

struct Line {
  Labels labels;
  result::Run run;
  std::vector<analysis::CaseParts> parts;
};
// Throws ConfigError: what is wrong with the line.
Line read_line(const std::string& text);

nlohmann::ordered_json to_json(const RunRow& run);

}  // namespace peakbench::history
