// What `peakbench check` found, and how it is shown. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace peakbench::cli {

enum class Answer { kPassed, kFailed, kNotChecked };
std::string answer_word(Answer answer);  // passed | failed | not checked

struct Finding {
  std::string id;        // of the entry; of a library that cannot be used, its file
  std::string question;  // build | runs | options | same bytes | longer run | promise | stacks
  Answer answer = Answer::kPassed;
  std::string text;                   // one sentence
  std::vector<std::string> failures;  // one sentence a case: "ID: crashed: ..."
};

bool all_passed(const std::vector<Finding>& findings);

// A line a finding, failures below it, and how many passed.
std::string findings_text(const std::vector<Finding>& findings, int width);
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// A table for a README or a release: GitHub's Markdown.
std::string findings_markdown(const std::vector<Finding>& findings);

}  // namespace peakbench::cli
