// What `peakbench check` found, and how it is shown. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "records/run.h"

namespace peakbench::cli {

enum class Answer { kPassed, kFailed, kNotChecked };

struct Finding {
  std::string id;        // of the entry; of a library that cannot be used, its file
  std::string question;  // build | runs | options | same bytes | longer run | promise | stacks
  Answer answer = Answer::kPassed;
  std::string text = {};                   // one sentence
  std::vector<std::string> failures = {};  // one sentence a case: "ID: crashed: ..."
};

bool all_passed(const std::vector<Finding>& findings);

// A line a finding, failures below it, and how many passed.
std::string findings_text(const std::vector<Finding>& findings, int width);
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// A table for a README or a release: GitHub's Markdown.
std::string findings_markdown(const std::vector<Finding>& findings);

// The figures that a plugin's author accepts, for NAME.expected.json: `libtorch`, its version, and
// `cases`: by id the status, the peaks and the bytes by category.
nlohmann::json figures_of(const records::Run& run);

// A sentence for each figure that differs and for each case that only one of them has. `accepted`
// has an object `cases`.
std::vector<std::string> differences(const nlohmann::json& accepted, const records::Run& run);

}  // namespace peakbench::cli
