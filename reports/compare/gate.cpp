#include "reports/compare/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/compare/text.h"
#include "reports/compare/words.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

using reports::printable;

constexpr std::size_t kPartsNamed = 5;

// The parts that grew where a figure is worse, the one that grew most first.
void add_parts(const PhaseGrowth& growth, std::vector<std::string>& details) {
  if (growth.direction != Direction::kWorse) return;
  std::size_t named = 0;
  for (const auto& part : growth.parts) {
    const bool grew = part.block_bytes > 0 || (part.block_bytes == 0 && part.requested_bytes > 0);
    if (!grew || named++ == kPartsNamed) break;
    details.push_back(fmt::format("{}: {} asked for, {} allocated: {}",
                                  reports::phase_label(growth.phase),
                                  short_difference(part.requested_bytes),
                                  short_difference(part.block_bytes), part_text(part)));
  }
}

bool is_worse(const Measure& measure) {
  return measure.is_held && measure.direction == Direction::kWorse;
}

// The other places where a figure is worse, in short: the one that grew most there.
std::string also_worse(const CaseComparison& one, const Measure& told) {
  constexpr std::size_t kPlacesNamed = 4;
  std::vector<const Measure*> places;
  const auto same_place = [](const Measure& a, const Measure& b) {
    return a.where == b.where && a.space == b.space;
  };
  for (const auto& measure : one.measures) {
    const bool is_the_peaks = told.where == "peak" && told.space.empty() && one.at_peak &&
                              measure.where == one.at_peak->phase;
    if (!is_worse(measure) || same_place(measure, told) || is_the_peaks) continue;
    const auto known = std::ranges::find_if(
        places, [&](const auto* place) { return same_place(*place, measure); });
    if (known == places.end())
      places.push_back(&measure);
    else if (measure.now - measure.base >= (*known)->now - (*known)->base)
      *known = &measure;
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(kPlacesNamed, places.size()); ++i)
    text += (i == 0 ? "" : ", ") + fmt::format("{} {}", figure_name(*places[i]),
                                               short_difference(places[i]->now - places[i]->base));
  if (places.size() > kPlacesNamed)
    text += fmt::format(" and {} more", places.size() - kPlacesNamed);
  return text.empty() ? "" : ". Also worse: " + text;
}

Finding memory_finding(const CaseComparison& one) {
  Finding finding{one.id, Outcome::kRegression, "", {}};
  const auto* told = telling_figure(one);
  finding.sentence = "memory is worse: " + figure_text(*told);
  if (const auto* why = explanation_of(one, *told))
    finding.sentence += (told->where == "peak" ? ", " : ": ") + explanation_text(*why, *told);
  if (told->where == "peak" && told->space.empty() && !one.lines.empty() &&
      one.lines.front().now > one.lines.front().base)
    finding.sentence += "; the line of code that grew most: " + line_text(one.lines.front());
  finding.sentence += also_worse(one, *told);
  for (const auto& measure : one.measures)
    if (is_worse(measure)) finding.details.push_back(figure_text(measure));
  for (const auto& measure : one.measures)
    if (is_worse(measure) && &measure != told)
      if (const auto* why = explanation_of(one, measure);
          why != nullptr && measure.figure == "allocated")
        finding.details.push_back(
            fmt::format("{}: {}", figure_name(measure), explanation_text(*why, measure)));
  for (const auto& growth : one.growth) add_parts(growth, finding.details);
  if (!one.growth_note.empty())
    finding.details.push_back("what grew is not known: " + one.growth_note);
  return finding;
}

// Under other conditions a figure that moved, whichever way, may be theirs: it is no regression,
// and does not pass.
void judge_under_other_conditions(const CaseComparison& one, const std::string& conditions,
                                  std::vector<Finding>& findings) {
  const auto not_comparable = [&](const std::string& what) {
    return fmt::format("not comparable ({}): {}", conditions, what);
  };
  bool is_said = false;
  for (auto& finding : findings) {
    if (finding.outcome != Outcome::kRegression) continue;
    finding.outcome = Outcome::kUnusable;
    finding.sentence = not_comparable(finding.sentence);
    is_said = true;
  }
  if (is_said || one.memory != Direction::kBetter) return;
  const auto better = not_comparable("memory is better: " + figure_text(*telling_figure(one)));
  findings.push_back({one.id, Outcome::kUnusable, better, {}});
}

std::vector<Finding> findings_of(const CaseComparison& one, const Comparison& comparison) {
  const auto& policy = comparison.policy;
  std::vector<Finding> found;
  const auto add = [&](Outcome outcome, const std::string& sentence) {
    found.push_back({one.id, outcome, sentence, {}});
  };
  if (one.state == CaseState::kRefused) add(Outcome::kUnusable, "not compared: " + one.reason);
  if ((one.state == CaseState::kFailed && policy.failed_fails) ||
      (one.state == CaseState::kMissing && policy.missing_fails))
    add(Outcome::kFailedCase, state_text(one) + ": " + one.reason);
  if (one.memory == Direction::kWorse) found.push_back(memory_finding(one));
  if (policy.verdict_fails && one.verdict && one.verdict->direction == Direction::kWorse)
    add(Outcome::kRegression, verdict_text(*one.verdict));
  if (policy.throughput && one.speed && one.speed->difference.direction == Direction::kWorse)
    add(Outcome::kRegression,
        "the step is slower: " + speed_text(one.speed->difference, "processes"));
  if (!comparison.incomparable.empty())
    judge_under_other_conditions(one, comparison.incomparable, found);
  return found;
}

std::string why_skipped(const CaseComparison& one) {
  if (one.state == CaseState::kNew)
    return "new: " + (one.reason.empty() ? "BASE has nothing to compare it with" : one.reason);
  return one.state == CaseState::kStillFailed ? state_text(one) + ": " + one.reason : "";
}

Finding nothing_finding(const Comparison& comparison) {
  return {"",
          Outcome::kUnusable,
          fmt::format("no case's memory was compared ({}): nothing was checked. Compare with a run "
                      "in which a case of NEW ended ok, or pass --allow-nothing where that is "
                      "expected",
                      states_text(comparison)),
          {}};
}

Outcome first_that_applies(const std::vector<Finding>& findings) {
  for (const auto outcome : {Outcome::kUnusable, Outcome::kFailedCase, Outcome::kRegression})
    if (std::ranges::find(findings, outcome, &Finding::outcome) != findings.end()) return outcome;
  return Outcome::kPassed;
}

}  // namespace

const char* to_string(Outcome outcome) {
  return outcome == Outcome::kPassed       ? "passed"
         : outcome == Outcome::kUnusable   ? "unusable"
         : outcome == Outcome::kRegression ? "regression"
                                           : "failed_case";
}

std::string headline(const Finding& finding) {
  return finding.case_id.empty() ? finding.sentence : finding.case_id + ": " + finding.sentence;
}

Decision decide(const Comparison& comparison, bool allow_nothing) {
  Decision decision;
  for (const auto& one : comparison.cases) {
    Checked checked{one.id, one.now_seconds, {}, why_skipped(one)};
    for (auto& finding : findings_of(one, comparison)) {
      checked.findings.push_back(decision.findings.size());
      decision.findings.push_back(std::move(finding));
    }
    decision.cases.push_back(std::move(checked));
  }
  // Beside cases that were compared, a case that still fails passes: it was known, and is listed.
  if (decision.findings.empty() && !allow_nothing && count(comparison, CaseState::kCompared) == 0)
    decision.findings.push_back(nothing_finding(comparison));
  decision.outcome = first_that_applies(decision.findings);
  decision.summary = summary_text(comparison);
  for (const auto& change : comparison.changes)
    if (change.is_setting) decision.settings.push_back(change_text(change));
  return decision;
}

nlohmann::ordered_json to_json(const Comparison& comparison, const Decision& decision) {
  auto findings = nlohmann::ordered_json::array();
  for (const auto& finding : decision.findings)
    findings.push_back({{"case", finding.case_id},
                        {"outcome", to_string(finding.outcome)},
                        {"sentence", finding.sentence},
                        {"details", finding.details}});
  nlohmann::ordered_json json{{"gate",
                               {{"outcome", to_string(decision.outcome)},
                                {"exit_code", decision.exit_code()},
                                {"summary", decision.summary},
                                {"settings", decision.settings},
                                {"findings", std::move(findings)}}}};
  json.update(to_json(comparison));
  return json;
}

std::string to_text(const Decision& decision, int width) {
  Page page(width);
  for (const auto& finding : decision.findings) {
    if (!finding.case_id.empty()) page.line(0, printable(finding.case_id));
    page.line(finding.case_id.empty() ? 0 : 2, printable(finding.sentence));
  }
  if (!decision.findings.empty()) page.blank();
  if (!decision.settings.empty())
    page.line(0, fmt::format("Changed settings: {}", fmt::join(decision.settings, "; ")));
  page.line(0, fmt::format("Gate: {} ({})", reports::spaced(to_string(decision.outcome)),
                           decision.summary));
  return page.take();
}

// A gate's decision as JUnit XML: a test case a case; worse is a failure, failed and not compared
// an error.

namespace {

struct FindingView {
  PEAKBENCH_VIEW(text(type, "regression, failed case or unusable"),
                 text(message, "One sentence"),
                 text(text, "Figures and parts, a line each"));
};

struct TestCaseView {
  PEAKBENCH_VIEW(text(model, "The first part of the id"),
                 text(id, "The case id"),
                 text(seconds, "Its wall time"),
                 text(skipped, "Why nothing was checked"),
                 list(FindingView, failures, "Where it is worse"),
                 list(FindingView, errors, "Where it failed"));
};

struct SuiteView {
  PEAKBENCH_VIEW(text(title, "NEW's title"),
                 text(created, "When NEW was made"),
                 text(base, "BASE's label"),
                 text(now, "NEW's label"),
                 text(outcome, "The gate's outcome"),
                 text(tests, "How many test cases"),
                 text(failures, "How many are worse"),
                 text(errors, "How many failed or cannot be told"),
                 text(skipped, "How many have nothing to be compared with"),
                 text(seconds, "NEW's wall time"),
                 list(TestCaseView, cases, "Every case"));
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

std::string junit(const Comparison& comparison, const Decision& decision,
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

}  // namespace peakbench::compare
