#include "reports/gate/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/compare/page.h"
#include "reports/compare/words.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::gate {
namespace {

using compare::CaseComparison;
using compare::CaseState;
using compare::Direction;
using reports::printable;

constexpr std::size_t kPartsNamed = 5;

std::string figure_text(const compare::Measure& measure) {
  const auto where = measure.space.empty() ? reports::phase_label(measure.where)
                                           : measure.where + " of " + measure.space;
  return fmt::format("{} {} {}, from {}", measure.figure,
                     compare::difference_text(measure.now - measure.base),
                     measure.where == "peak" ? "at the " + where : "in " + where,
                     compare::bytes_text(measure.base));
}

// The parts that grew in a phase that is worse, the one that grew most first.
void add_parts(const compare::PhaseGrowth& growth, std::vector<std::string>& details) {
  if (growth.direction != Direction::kWorse) return;
  std::size_t named = 0;
  for (const auto& part : growth.parts) {
    const bool grew = part.block_bytes > 0 || (part.block_bytes == 0 && part.requested_bytes > 0);
    if (!grew || named++ == kPartsNamed) break;
    details.push_back(
        fmt::format("{}: {} asked for, {} allocated: {}", reports::phase_label(growth.phase),
                    compare::short_difference(part.requested_bytes),
                    compare::short_difference(part.block_bytes),
                    compare::part_text(part.category, part.allocated_in, part.module, part.op)));
  }
}

// The part that grew most, in the phase that grew most.
std::string most_grown(const CaseComparison& one) {
  const compare::PhaseGrowth* most = nullptr;
  for (const auto& growth : one.growth)
    if (growth.direction == Direction::kWorse && !growth.parts.empty() &&
        (!most || growth.parts.front().block_bytes > most->parts.front().block_bytes))
      most = &growth;
  if (!most) return "";
  const auto& part = most->parts.front();
  return fmt::format("; what grew most, in {}: {}, {}", reports::phase_label(most->phase),
                     compare::short_difference(part.block_bytes),
                     compare::part_text(part.category, part.allocated_in, part.module, part.op));
}

Finding memory_finding(const CaseComparison& one) {
  Finding finding{one.id, Outcome::kRegression, "", {}};
  std::string first;
  for (const auto& measure : one.measures) {
    if (measure.direction != Direction::kWorse) continue;
    if (first.empty()) first = figure_text(measure);
    finding.details.push_back(figure_text(measure));
  }
  finding.sentence = "memory is worse: " + first + most_grown(one);
  for (const auto& growth : one.growth) add_parts(growth, finding.details);
  if (!one.growth_note.empty())
    finding.details.push_back("what grew is not known: " + one.growth_note);
  return finding;
}

Finding speed_finding(const CaseComparison& one) {
  return {one.id,
          Outcome::kRegression,
          "the step is slower: " + compare::speed_text(one.speed->difference, "processes"),
          {}};
}

std::vector<Finding> findings_of(const CaseComparison& one, const compare::Policy& policy) {
  std::vector<Finding> found;
  switch (one.state) {
    case CaseState::kRefused:
      found.push_back({one.id, Outcome::kUnusable, "not compared: " + one.reason, {}});
      break;
    case CaseState::kFailed:
      if (policy.failed_fails)
        found.push_back({one.id,
                         Outcome::kFailedCase,
                         fmt::format("{}: {}", compare::state_text(one), one.reason),
                         {}});
      break;
    case CaseState::kMissing:
      if (policy.missing_fails)
        found.push_back({one.id,
                         Outcome::kFailedCase,
                         fmt::format("{}: {}", compare::state_text(one), one.reason),
                         {}});
      break;
    default:
      break;
  }
  if (one.memory == Direction::kWorse) found.push_back(memory_finding(one));
  if (policy.verdict_fails && one.verdict && one.verdict->direction == Direction::kWorse)
    found.push_back({one.id, Outcome::kRegression, compare::verdict_text(*one.verdict), {}});
  if (policy.throughput && one.speed && one.speed->difference.direction == Direction::kWorse)
    found.push_back(speed_finding(one));
  return found;
}

std::string why_skipped(const CaseComparison& one) {
  switch (one.state) {
    case CaseState::kNew:
      return "new: " + (one.reason.empty() ? "BASE has nothing to compare it with" : one.reason);
    case CaseState::kStillFailed:
      return compare::state_text(one) + ": " + one.reason;
    default:
      return "";
  }
}

// Beside cases that were compared, a case that still fails passes: it was known, and it is listed.
bool nothing_compared(const compare::Comparison& comparison) {
  return compare::count(comparison, CaseState::kCompared) == 0;
}

Finding nothing_finding(const compare::Comparison& comparison) {
  return {"",
          Outcome::kUnusable,
          fmt::format("no case's memory was compared ({}): nothing was checked. Compare with a run "
                      "in which a case of NEW ended ok, or pass --allow-nothing where that is "
                      "expected",
                      compare::states_text(comparison)),
          {}};
}

Outcome first_that_applies(const std::vector<Finding>& findings) {
  for (const auto outcome : {Outcome::kUnusable, Outcome::kFailedCase, Outcome::kRegression})
    for (const auto& finding : findings)
      if (finding.outcome == outcome) return outcome;
  return Outcome::kPassed;
}

}  // namespace

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kUnusable:
      return "unusable";
    case Outcome::kRegression:
      return "regression";
    case Outcome::kFailedCase:
      return "failed_case";
  }
  return "";
}

std::string headline(const Finding& finding) {
  return finding.case_id.empty() ? finding.sentence : finding.case_id + ": " + finding.sentence;
}

Decision decide(const compare::Comparison& comparison, bool allow_nothing) {
  Decision decision;
  for (const auto& one : comparison.cases) {
    Checked checked{one.id, one.now_seconds, {}, why_skipped(one)};
    for (auto& finding : findings_of(one, comparison.policy)) {
      checked.findings.push_back(decision.findings.size());
      decision.findings.push_back(std::move(finding));
    }
    decision.cases.push_back(std::move(checked));
  }
  if (decision.findings.empty() && !allow_nothing && nothing_compared(comparison))
    decision.findings.push_back(nothing_finding(comparison));
  decision.outcome = first_that_applies(decision.findings);
  decision.summary = compare::summary_text(comparison);
  return decision;
}

nlohmann::ordered_json to_json(const compare::Comparison& comparison, const Decision& decision) {
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
                                {"findings", std::move(findings)}}}};
  json.update(compare::to_json(comparison));
  return json;
}

std::string to_text(const Decision& decision, int width) {
  compare::Page page(width);
  for (const auto& finding : decision.findings) {
    if (!finding.case_id.empty()) page.line(0, printable(finding.case_id));
    page.line(finding.case_id.empty() ? 0 : 2, printable(finding.sentence));
  }
  if (!decision.findings.empty()) page.blank();
  page.line(0, fmt::format("Gate: {} ({})", reports::spaced(to_string(decision.outcome)),
                           decision.summary));
  return page.take();
}

}  // namespace peakbench::gate
