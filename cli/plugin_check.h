// What `peakbench check` asks of a plugin, and what its runs answer. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "result/run.h"

namespace peakbench::cli {

// Choices of each option that are not its default: the other words, the other truth, the least
// number; "my-sgd,nesterov=true". One option is changed at a time.
std::vector<std::string> option_variants(const manifest::Entry& entry);

// One entry of the plugin that is checked.
struct Checked {
  manifest::Kind kind = manifest::Kind::kStrategy;
  const manifest::Entry* entry = nullptr;
};

// What was run, each a run of its own.
struct CheckRuns {
  result::Run card;     // alone and with every other strategy, on an emulated card
  result::Run options;  // every choice of every option there; no cases: there are no options
  result::Run again;    // alone, as before
  result::Run longer;   // alone, with twice the steps
  result::Run cpu;      // all of it on the CPU, where the promise is held
};

enum class Answer { kPassed, kFailed, kNotTested };
std::string answer_word(Answer answer);  // passed | failed | not tested

struct Finding {
  std::string id;        // of the entry; of a library that cannot be used, its file
  std::string question;  // build | runs | options | same bytes | longer run | promise | stacks
  Answer answer = Answer::kPassed;
  std::string text;                   // one sentence
  std::vector<std::string> failures;  // one sentence a case: "ID: crashed: ..."
};

std::vector<Finding> findings_of(const Checked& checked, const CheckRuns& runs);

bool all_passed(const std::vector<Finding>& findings);

// A line a finding, failures below it, and how many passed.
std::string findings_text(const std::vector<Finding>& findings, int width);
nlohmann::ordered_json findings_json(const std::vector<Finding>& findings);
// A table for a README or a release: GitHub's Markdown.
std::string findings_markdown(const std::vector<Finding>& findings);

}  // namespace peakbench::cli
