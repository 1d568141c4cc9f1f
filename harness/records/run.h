#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"
#include "records/published.h"

namespace peakbench::records {

// A run: the cases that were asked for together, where they ran, and how. Stored as DIR/run.json.

inline constexpr const char* kSchemaVersion = "1.5.0";  // semantic; readers accept the same major

struct Run {
  std::string schema_version = kSchemaVersion;
  std::string title;                 // the suite's, or made from the command line
  std::string created;               // RFC 3339, UTC
  std::string status = "complete";   // running | complete | interrupted
  std::vector<std::string> command;  // argv as typed
  std::string suite;                 // file name, empty from the command line
  std::string reference;  // the stack that differences are shown against: the first named
  nlohmann::json environment =
      nlohmann::json::object();  // host, os, cpu, memory, libtorch, peakbench, commit
  nlohmann::json settings = nlohmann::json::object();  // steps, warmup, repetitions, timeout, limit
  std::vector<Published> published;
  std::vector<CaseResult> cases;     // in plan order, as far as they ended
  std::vector<std::string> pending;  // ids planned and not yet run
};

nlohmann::ordered_json to_json(const Run& run);
// Throws RunFileError (result/errors.h) that names the field and what was expected. Accepts unknown
// fields.
Run run_from_json(const nlohmann::json& json);

// Atomic: a reader sees the old file or the new one.
void write_run(const Run& run, const std::string& directory);

// The same file, of texts of the cases instead of `run.cases`: a run at work writes it again and
// again, and most of its cases have long ended.
std::string case_text(const CaseResult& result);
void write_run(const Run& run, const std::vector<const std::string*>& cases,
               const std::string& directory);
// `path`: run.json or its folder. Clear errors for missing, truncated and newer files.
Run read_run(const std::string& path);

// The case of this id; null where the run has none.
inline const CaseResult* find_case(const Run& run, const std::string& id) {
  const auto at = std::ranges::find(
      run.cases, id, [](const CaseResult& one) -> const std::string& { return one.spec.id; });
  return at == run.cases.end() ? nullptr : &*at;
}

// What `peakbench fit` found, as fit.json in the folder of its run keeps it and a report shows it.

inline constexpr const char* kFitFile = "fit.json";

// One stack on one card.
struct FitCell {
  std::string id;         // of the case with `largest`
  std::string row, card;  // what the answer's grid calls them: "lora", "a100-40gb"
  std::string state;      // fits | does_not_fit | unknown | not_run
  std::string reason;     // of the last two, a sentence
  std::optional<std::int64_t> largest;
  std::int64_t card_memory_bytes = 0;
  // For `largest`, or for the smallest value if none fits. `takes_bytes`: the least memory that it
  // runs in, else the reserved memory. `left_bytes`: the rest of the card's memory, less a CUDA
  // context; negative if it is too small.
  std::optional<std::int64_t> takes_bytes, left_bytes;
  bool is_least = false;             // `takes_bytes` is the least memory
  std::string fails;                 // why the next value does not run
  std::vector<std::string> against;  // what speaks against the boundary
};

struct FitGrid {
  std::string run_created;  // of the run that was made with it; empty: none was
  std::string answer;       // lines
  // "batch size", or a placeholder's name; empty where nothing was searched along: fits or not.
  std::string label;
  std::vector<FitCell> cells;
};

// Whether the run was made with it, and not put in its folder later.
bool is_of(const FitGrid& grid, const Run& run);

// What is in the folder; nullopt: no fit.json. Throws RunFileError: it cannot be read.
std::optional<FitGrid> read_fit_grid(const std::string& folder);

}  // namespace peakbench::records
