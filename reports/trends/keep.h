#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/trends/history.h"

namespace peakbench::trends {

// Runs of a history as lines of JSON, and back: to keep them elsewhere, to join histories, to save
// what a damaged file still holds.

// {"history_line": 1, "number", "added", "branch", "commit", "verdict", "note", "run": run.json,
// "parts"}: one line, without its newline.
std::string line_of(const History& history, const RunRow& run);

struct Line {
  Labels labels;
  records::Run run;
  std::vector<analysis::CaseParts> parts;
};
// Throws ConfigError: what is wrong with the line.
Line read_line(const std::string& text);

nlohmann::ordered_json to_json(const RunRow& run);

// Which runs may go.

struct PruneRules {
  std::optional<std::int64_t> keep;       // so many newest of each branch and suite stay
  std::optional<std::string> older_than;  // RFC 3339: those created before may go
  std::string branch;                     // only this one's; empty: all
};

// Of `runs` (the newest first) those that may go: by both rules where both are given. The newest of
// each branch and suite stays, and so does its newest good one, which gates compare with.
std::vector<RunRow> to_prune(const std::vector<RunRow>& runs, const PruneRules& rules);

// "90d", "12w", "2y", or a date "2026-01-31": the moment so long before `now` (seconds since 1970).
// Throws ConfigError.
std::string moment_before(const std::string& text, std::int64_t now);

}  // namespace peakbench::trends
