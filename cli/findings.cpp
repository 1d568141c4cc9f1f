#include "cli/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/render/text.h"
#include "text/printable.h"
#include "text/wrapped.h"

namespace peakbench::cli {
namespace {

nlohmann::ordered_json json_of(const Finding& finding) {
  return {{"id", finding.id},
          {"question", finding.question},
          {"answer", answer_word(finding.answer)},
          {"text", finding.text},
          {"failures", finding.failures}};
}

std::string counts(const std::vector<Finding>& findings) {
  const auto of = [&](Answer answer) {
    return std::ranges::count(findings, answer, &Finding::answer);
  };
  return fmt::format("{} passed, {} failed, {} not checked", of(Answer::kPassed),
                     of(Answer::kFailed), of(Answer::kNotChecked));
}

}  // namespace

std::string answer_word(Answer answer) {
  switch (answer) {
    case Answer::kPassed:
      return "passed";
    case Answer::kFailed:
      return "failed";
    case Answer::kNotChecked:
      return "not checked";
  }
  return "";
}

bool all_passed(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& finding) {
    return finding.answer == Answer::kFailed ||
           // A plugin that ran with nothing was not checked.
           (finding.answer == Answer::kNotChecked && finding.question == "runs");
  });
}

std::string findings_text(const std::vector<Finding>& findings, int width) {
  std::string text, of;
  for (const auto& finding : findings) {
    if (finding.id != of) text += (text.empty() ? "" : "\n") + printable(finding.id) + "\n";
    of = finding.id;
    text +=
        hanging(fmt::format("  {:<11}  {:<10}  ", answer_word(finding.answer), finding.question),
                printable(finding.text), width);
    for (const auto& failure : finding.failures)
      text += hanging("      ", printable(failure), width);
  }
  return text + "\n" + counts(findings) + "\n";
}

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& finding : findings) json.push_back(json_of(finding));
  return json;
}

std::string findings_markdown(const std::vector<Finding>& findings) {
  std::string text = "| entry | question | answer | |\n|:--|:--|:--|:--|\n";
  for (const auto& finding : findings) {
    text += fmt::format("| {} | {} | {} | {} |\n", reports::escape_markdown(finding.id),
                        finding.question, answer_word(finding.answer),
                        reports::escape_markdown(finding.text));
  }
  for (const auto& finding : findings)
    for (const auto& failure : finding.failures)
      text += fmt::format("\n- {}: {}", finding.question, reports::escape_markdown(failure));
  return text + (text.back() == '\n' ? "" : "\n");
}

}  // namespace peakbench::cli
