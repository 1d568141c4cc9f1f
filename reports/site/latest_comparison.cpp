#include "reports/site/latest_comparison.h"

#include <fmt/format.h>

#include "errors/errors.h"
#include "reports/compare/render.h"
#include "reports/history/source.h"

namespace peakbench::site {
namespace {

using history::RunRow;

bool is_good(const RunRow& run) {
  const auto& verdict = run.labels.verdict;
  return run.ok_cases > 0 && (verdict.empty() || verdict == "passed" || verdict == "accepted");
}

// Without them the comparison says that what grew is not known.
std::vector<analysis::CaseParts> parts_or_none(const history::History& history, const RunRow& run) {
  try {
    return history.parts(run.number);
  } catch (const ConfigError&) {
    return {};
  }
}

history::Source source_of(const history::History& history, const RunRow& run) {
  const auto& commit = run.labels.commit;
  return {history.record(run.number), parts_or_none(history, run), "",
          fmt::format("{} (run {}{}{})", run.labels.branch, run.number, commit.empty() ? "" : ", ",
                      commit.substr(0, 12))};
}

// What the gate said when the run was added.
std::optional<compare::GateNote> note_of(const RunRow& run) {
  const auto& verdict = run.labels.verdict;
  if (verdict.empty()) return std::nullopt;
  return compare::GateNote{verdict == "passed" || verdict == "accepted", verdict, {}};
}

}  // namespace

std::optional<Pair> latest_pair(const Contents& contents) {
  const RunRow *now = nullptr, *before = nullptr;
  for (const auto& run : contents.runs) {
    if (run.labels.branch != contents.branch) continue;
    if (now == nullptr) {
      now = &run;
    } else if (run.suite == now->suite) {
      if (is_good(run)) return Pair{run, *now};
      if (before == nullptr) before = &run;
    }
  }
  return before == nullptr ? std::nullopt : std::optional(Pair{*before, *now});
}

std::optional<std::string> comparison_page(const history::History& history, const Pair& pair,
                                           const Options& options) {
  history::Source base, now;
  compare::Comparison comparison;
  try {
    base = source_of(history, pair.base);
    now = source_of(history, pair.now);
    comparison = compare::compare(base, now, compare::policy_of(base, now));
  } catch (const ConfigError&) {
    return std::nullopt;
  }
  compare::PageOptions page;
  page.template_directory = options.template_directory;
  page.builtin_template_directory = options.builtin_template_directory;
  page.gate = note_of(pair.now);
  return compare::render_html(base, now, comparison, page);
}

}  // namespace peakbench::site
