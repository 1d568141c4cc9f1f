// A gate's decision as JUnit XML: a test case a case; worse is a failure, failed and not compared
// an error.
#include <fmt/format.h>

#include <algorithm>

#include "reports/gate/gate.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::gate {
namespace {

using nlohmann::json;
using reports::Field;
using reports::FieldKind;
using reports::printable;

Field text(std::string name, std::string summary) {
  return {std::move(name), FieldKind::kText, std::move(summary), {}};
}

Field list(std::string name, std::string summary, std::vector<Field> fields) {
  return {std::move(name), FieldKind::kList, std::move(summary), std::move(fields)};
}

std::vector<Field> finding_fields() {
  return {text("type", "regression, failed case or unusable"), text("message", "One sentence"),
          text("text", "Figures and parts, a line each")};
}

const Field& fields() {
  static const Field root{
      "",
      FieldKind::kObject,
      "",
      {text("title", "NEW's title"), text("created", "When NEW was made"),
       text("base", "BASE's label"), text("now", "NEW's label"),
       text("outcome", "The gate's outcome"), text("tests", "How many test cases"),
       text("failures", "How many are worse"), text("errors", "How many failed or cannot be told"),
       text("skipped", "How many have nothing to be compared with"),
       text("seconds", "NEW's wall time"),
       list("cases", "Every case",
            {text("model", "The first part of the id"), text("id", "The case id"),
             text("seconds", "Its wall time"), text("skipped", "Why nothing was checked"),
             list("failures", "Where it is worse", finding_fields()),
             list("errors", "Where it failed", finding_fields())})}};
  return root;
}

json finding_view(const Finding& finding) {
  std::string lines;
  for (const auto& detail : finding.details) lines += printable(detail) + "\n";
  return {{"type", reports::spaced(to_string(finding.outcome))},
          {"message", printable(finding.sentence)},
          {"text", lines}};
}

std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds); }

json case_view(const Checked& one, const Decision& decision) {
  json failures = json::array(), errors = json::array();
  for (const auto index : one.findings) {
    const auto& finding = decision.findings[index];
    (finding.outcome == Outcome::kRegression ? failures : errors).push_back(finding_view(finding));
  }
  return {{"model", printable(one.case_id.substr(0, one.case_id.find('/')))},
          {"id", printable(one.case_id)},
          {"seconds", seconds_text(one.seconds)},
          {"skipped", printable(one.skipped)},
          {"failures", std::move(failures)},
          {"errors", std::move(errors)}};
}

// What is wrong with the whole gate is a test case of its own: skipped ones alone would look well.
json whole_gate_view(const Finding& finding) {
  return {{"model", "peakbench gate"},  {"id", "at least one case was compared"},
          {"seconds", seconds_text(0)}, {"skipped", ""},
          {"failures", json::array()},  {"errors", json::array({finding_view(finding)})}};
}

}  // namespace

std::string junit(const compare::Comparison& comparison, const Decision& decision,
                  const std::string& template_directory,
                  const std::string& builtin_template_directory) {
  json cases = json::array();
  std::size_t failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  for (const auto& one : decision.cases) {
    cases.push_back(case_view(one, decision));
    // A test case counts once, whatever it holds.
    if (!cases.back()["errors"].empty()) {
      ++errors;
    } else if (!cases.back()["failures"].empty()) {
      ++failures;
    }
    if (!one.skipped.empty()) ++skipped;
    seconds += one.seconds;
  }
  for (const auto& finding : decision.findings) {
    if (!finding.case_id.empty()) continue;
    cases.push_back(whole_gate_view(finding));
    ++errors;
  }
  const json view{{"title", printable(comparison.now.title)},
                  {"created", printable(comparison.now.created)},
                  {"base", printable(comparison.base.label)},
                  {"now", printable(comparison.now.label)},
                  {"outcome", reports::spaced(to_string(decision.outcome))},
                  {"tests", std::to_string(cases.size())},
                  {"failures", std::to_string(failures)},
                  {"errors", std::to_string(errors)},
                  {"skipped", std::to_string(skipped)},
                  {"seconds", seconds_text(seconds)},
                  {"cases", std::move(cases)}};
  const reports::Templates templates(template_directory, builtin_template_directory);
  return templates.render("junit/gate.xml.mustache", reports::complete(view, fields()), fields(),
                          reports::Escape::kHtml);
}

}  // namespace peakbench::gate
