// A run: the cases that were asked for together, where they ran, and how. Stored as DIR/run.json.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "result/case.h"
#include "result/published.h"

namespace peakbench::result {

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

// Atomic: written beside and renamed, so that a reader sees the old file or the new one.
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

}  // namespace peakbench::result
