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

using reports::FieldValues;
using reports::printable;

struct FindingView {
  std::string type, message, text;

  FieldValues fields() const {
    return {{"type", type, "regression, failed case or unusable"},
            {"message", message, "One sentence"},
            {"text", text, "Figures and parts, a line each"}};
  }
};

struct TestCaseView {
  std::string model, id, seconds, skipped;
  std::vector<FindingView> failures, errors;

  FieldValues fields() const {
    return {{"model", model, "The first part of the id"},
            {"id", id, "The case id"},
            {"seconds", seconds, "Its wall time"},
            {"skipped", skipped, "Why nothing was checked"},
            {"failures", failures, "Where it is worse"},
            {"errors", errors, "Where it failed"}};
  }
};

struct SuiteView {
  std::string title, created, base, now, outcome, tests, failures, errors, skipped, seconds;
  std::vector<TestCaseView> cases;

  FieldValues fields() const {
    return {{"title", title, "NEW's title"},
            {"created", created, "When NEW was made"},
            {"base", base, "BASE's label"},
            {"now", now, "NEW's label"},
            {"outcome", outcome, "The gate's outcome"},
            {"tests", tests, "How many test cases"},
            {"failures", failures, "How many are worse"},
            {"errors", errors, "How many failed or cannot be told"},
            {"skipped", skipped, "How many have nothing to be compared with"},
            {"seconds", seconds, "NEW's wall time"},
            {"cases", cases, "Every case"}};
  }
};

FindingView finding_view(const Finding& finding) {
  std::string lines;
  for (const auto& detail : finding.details) lines += printable(detail) + "\n";
  return {reports::spaced(to_string(finding.outcome)), printable(finding.sentence), lines};
}

std::string seconds_text(double seconds) { return fmt::format("{:.3f}", seconds); }

TestCaseView case_view(const Checked& one, const Decision& decision) {
  TestCaseView view;
  view.model = printable(one.case_id.substr(0, one.case_id.find('/')));
  view.id = printable(one.case_id);
  view.seconds = seconds_text(one.seconds);
  view.skipped = printable(one.skipped);
  for (const auto index : one.findings) {
    const auto& finding = decision.findings[index];
    (finding.outcome == Outcome::kRegression ? view.failures : view.errors)
        .push_back(finding_view(finding));
  }
  return view;
}

// What is wrong with the whole gate is a test case of its own: skipped ones alone would look well.
TestCaseView whole_gate_view(const Finding& finding) {
  TestCaseView view;
  view.model = "peakbench gate";
  view.id = "at least one case was compared";
  view.seconds = seconds_text(0);
  view.errors = {finding_view(finding)};
  return view;
}

}  // namespace

std::string junit(const compare::Comparison& comparison, const Decision& decision,
                  const std::string& template_directory,
                  const std::string& builtin_template_directory) {
  SuiteView view;
  std::size_t failures = 0, errors = 0, skipped = 0;
  double seconds = 0;
  for (const auto& one : decision.cases) {
    view.cases.push_back(case_view(one, decision));
    // A test case counts once, whatever it holds.
    if (!view.cases.back().errors.empty()) {
      ++errors;
    } else if (!view.cases.back().failures.empty()) {
      ++failures;
    }
    if (!one.skipped.empty()) ++skipped;
    seconds += one.seconds;
  }
  for (const auto& finding : decision.findings) {
    if (!finding.case_id.empty()) continue;
    view.cases.push_back(whole_gate_view(finding));
    ++errors;
  }
  view.title = printable(comparison.now.title);
  view.created = printable(comparison.now.created);
  view.base = printable(comparison.base.label);
  view.now = printable(comparison.now.label);
  view.outcome = reports::spaced(to_string(decision.outcome));
  view.tests = std::to_string(view.cases.size());
  view.failures = std::to_string(failures);
  view.errors = std::to_string(errors);
  view.skipped = std::to_string(skipped);
  view.seconds = seconds_text(seconds);
  const reports::Templates templates(template_directory, builtin_template_directory);
  return templates.render("junit/gate.xml.mustache", view, reports::Escape::kHtml);
}

}  // namespace peakbench::gate
