#pragma once

#include <optional>
#include <string>

#include "reports/analysis/causes.h"
#include "reports/trends/history.h"

namespace peakbench::trends {

// `history:[BRANCH][@WHICH][,suite=NAME][,card=TEXT]` (source.h) as a record.

struct Reference {
  Filter filter;
  bool previous = false;  // the run before the newest one
};

// nullopt where `text` does not begin with `history:`. Throws ConfigError: an unknown key, a commit
// that is too short.
std::optional<Reference> reference_from(const std::string& text);

// Finding a run to compare, wherever it is: a folder, a run.json, or a run of the history.

using analysis::Source;

// "main@good (run 12, 3f9c2d1a0b4e)".
std::string run_label(const std::string& named, const RunRow& row);

inline constexpr const char* kHistoryVariable = "PEAKBENCH_HISTORY";
inline constexpr const char* kDefaultHistoryFile = "peakbench-history.sqlite";

// `asked` (from --history), or $PEAKBENCH_HISTORY, or the default in the working folder.
std::string history_file(const std::string& asked);

// `reference` is a run folder, a run.json, or
//
//   history:[BRANCH][@WHICH][,suite=NAME][,card=TEXT]
//
// BRANCH: default all. WHICH is one of:
//
// - latest: the default
// - previous: the one before
// - good: the last that passed a gate, was accepted, or was not judged
// - the number of a run (`peakbench history list`)
// - a commit: at least four characters; its last run
//
// suite, card: only runs of that suite; only runs with a case on a card with TEXT in its name.
//
// Throws ConfigError: nothing fits (lists what exists), several commits fit, the history cannot be
// read.
Source read_source(const std::string& reference, const std::string& history_file);

}  // namespace peakbench::trends
