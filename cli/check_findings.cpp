#include "cli/check_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/columns.h"
#include "base/printable.h"
#include "records/case_json.h"
#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::cli {
namespace {

std::string answer_word(Answer answer) {
  return std::array{"passed", "failed", "not checked"}.at(static_cast<std::size_t>(answer));
}

using nlohmann::json;

std::string figure_text(const json& value) {
  if (value.is_null()) return "none";
  if (value.is_number_integer()) return reports::grouped(value.get<std::int64_t>());
  if (value.is_string()) return value.get<std::string>();
  return value.is_structured() ? "figures" : value.dump();
}

// "expected 1,024, got 1,536 (+512)"
std::string change_text(const json& before, const json& now) {
  auto text = fmt::format("expected {}, got {}", figure_text(before), figure_text(now));
  if (before.is_number_integer() && now.is_number_integer() && before >= 0)  // no overflow
    text += fmt::format(
        " ({})", reports::signed_grouped(now.get<std::int64_t>() - before.get<std::int64_t>()));
  return text;
}

json at(const json& whole, const json::json_pointer& place) {
  return whole.contains(place) ? whole.at(place) : json();
}

}  // namespace

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
  const auto count = [&](Answer answer) {
    return std::ranges::count(findings, answer, &Finding::answer);
  };
  return text + fmt::format("\n{} passed, {} failed, {} not checked\n", count(Answer::kPassed),
                            count(Answer::kFailed), count(Answer::kNotChecked));
}

nlohmann::ordered_json findings_json(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& finding : findings)
    json.push_back({{"id", finding.id},
                    {"question", finding.question},
                    {"answer", answer_word(finding.answer)},
                    {"text", finding.text},
                    {"failures", finding.failures}});
  return json;
}

std::string findings_markdown(const std::vector<Finding>& findings) {
  std::string text = "| entry | question | answer | |\n|:--|:--|:--|:--|\n";
  for (const auto& finding : findings)
    text += fmt::format("| {} | {} | {} | {} |\n", reports::escape_markdown(finding.id),
                        finding.question, answer_word(finding.answer),
                        reports::escape_markdown(finding.text));
  for (const auto& finding : findings)
    for (const auto& failure : finding.failures)
      text += fmt::format("\n- {}: {}", finding.question, reports::escape_markdown(failure));
  return text + (text.back() == '\n' ? "" : "\n");
}

json figures_of(const records::Run& run) {
  json cases = json::object();
  for (const auto& result : run.cases) {
    auto& figures = cases[result.spec.id] = {{"status", to_string(result.status)}};
    if (!result.memory) continue;
    const auto memory = records::to_json(*result.memory);
    for (const char* key :
         {"peak_allocated_bytes", "peak_requested_bytes", "peak_reserved_bytes", "at_peak"})
      figures[key] = memory[key];
  }
  return {{"libtorch", run.environment.value("libtorch", "")}, {"cases", cases}};
}

std::vector<std::string> differences(const json& accepted, const records::Run& run) {
  const json &expected = accepted["cases"], got = figures_of(run)["cases"];
  std::vector<std::string> found;
  for (const auto& change : json::diff(expected, got)) {
    const json::json_pointer place(change["path"].get<std::string>());
    std::string id, figure;  // of /ID/at_peak/parameter the first and the others
    for (auto rest = place; !rest.empty(); rest.pop_back()) {
      if (!id.empty()) figure = id + (figure.empty() ? ": " : ".") + figure;
      id = rest.back();
    }
    auto& text = found.emplace_back(
        fmt::format("{}: {}{}", id, figure, change_text(at(expected, place), at(got, place))));
    if (const auto* result = records::find_case(run, id); result && !result->reason.empty())
      text += ": " + result->reason;
  }
  return found;
}

}  // namespace peakbench::cli
