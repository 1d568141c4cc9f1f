#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/run/report.h"
#include "reports/run/trace_view.h"
#include "reports/run/view_group.h"
#include "reports/run/view_sizes.h"

namespace peakbench::reports {

// How the figures were obtained: command, environment, settings; and what was not measured.

struct DeviceView {
  PEAKBENCH_VIEW(text(device, "As in the case id"),
                 list(FactView, facts, "Card, driver, processor's capability"));
  bool operator==(const DeviceView&) const = default;
};

struct RunView {
  PEAKBENCH_VIEW(text(title, "The run's title"),
                 text(created, "When, for people"),
                 text(status, "complete, interrupted, running"),
                 text(command, "As typed, quoted for a shell"),
                 text(suite, "Suite file"),
                 list(FactView, environment, "Where it ran"),
                 list(DeviceView, devices, "What each device of the run was, once"),
                 list(FactView, settings, "How it was measured"));
};

struct MissingView {
  PEAKBENCH_VIEW(text(what, "What is missing"),
                 text(reason, "Why"),
                 text(count, "How many cases"),
                 flag(one, "It is one case"),
                 texts(cases, "Their ids, the first few"));
};

// The view model: from records to what templates show (reports/render/record.h). Pure.

struct ReportView {
  bool has_measured = false;
  PEAKBENCH_VIEW(
      text(title, "The run's title"),
      text(created, "When, for people"),
      text(created_iso, "When, RFC 3339"),
      flag(interrupted, "Some run was stopped before its end"),
      flag(several_runs, "The report joins several runs"),
      text(case_count, "Cases with an outcome, of those that were asked for"),
      flag(one_case, "It is one"),
      text(failed_count, "Of these, not `ok`; empty if none"),
      text(pending_count, "Planned and not run; empty if none"),
      texts(pending, "Their ids"),
      flag(has_emulated, "Some figures come from an emulated card"),
      shown("has_sources", !sources.empty(), "Some published figure is shown"),
      shown("has_not_measured", !not_measured.empty(), "`not_measured` is not empty"),
      flag(has_programs, "Some case is a program of a user"),
      flag(has_strategies, "Some case is a model under strategies"),
      shown("mixed", has_emulated && has_measured, "Both: they are never compared with each other"),
      list(FitView, fits, "What fits, as `peakbench fit` found it: one a run that it made"),
      list(GroupView, groups, "One table each: cases that differ by strategy only"),
      shown("several_groups", groups.size() > 1, "There is more than one"),
      list(ScalingView, scaling, "How the peak grows, one table each: cases that differ by stack, "
           "and by batch size or sequence length"),
      list(SourceView, sources, "Published figures' sources, numbered"),
      list(RunView, runs, "How the figures were obtained"),
      maybe(ChartsView, charts, "HTML: the library of the interactive chart; absent where "
            "Peakbench was built without it"),
      list(MissingView, not_measured, "What was not measured, and why"));
};

// Without `anatomies` nothing of any trace is shown.
ReportView make_view(const std::vector<records::Run>& runs, const Anatomies& anatomies = {});

}  // namespace peakbench::reports
