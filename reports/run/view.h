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
  std::string device;
  std::vector<FactView> facts;

  FieldValues fields() const {
    return {{"device", device, "As in the case id"},
            {"facts", facts, "Card, driver, processor's capability"}};
  }
  bool operator==(const DeviceView&) const = default;
};

struct RunView {
  std::string title, created, status, command, suite;
  std::vector<FactView> environment;
  std::vector<DeviceView> devices;
  std::vector<FactView> settings;

  FieldValues fields() const {
    return {{"title", title, "The run's title"},
            {"created", created, "When, for people"},
            {"status", status, "complete, interrupted, running"},
            {"command", command, "As typed, quoted for a shell"},
            {"suite", suite, "Suite file"},
            {"environment", environment, "Where it ran"},
            {"devices", devices, "What each device of the run was, once"},
            {"settings", settings, "How it was measured"}};
  }
};

RunView run_view(const records::Run& run);

struct MissingView {
  std::string what, reason, count;
  bool one = false;
  std::vector<std::string> cases;

  FieldValues fields() const {
    return {{"what", what, "What is missing"},
            {"reason", reason, "Why"},
            {"count", count, "How many cases"},
            {"one", one, "It is one case"},
            {"cases", cases, "Their ids, the first few"}};
  }
};

std::vector<MissingView> not_measured_view(const std::vector<records::Run>& runs,
                                           const Anatomies& anatomies);

// The view model: from records to what templates show (reports/render/record.h). Pure.

struct ReportView {
  std::string title, created, created_iso;
  std::string case_count, failed_count, pending_count;
  bool interrupted = false, several_runs = false, one_case = false;
  bool has_emulated = false, has_measured = false;
  bool has_programs = false, has_strategies = false;
  std::vector<std::string> pending;
  std::vector<FitView> fits;
  std::vector<GroupView> groups;
  std::vector<ScalingView> scaling;
  std::vector<SourceView> sources;
  std::vector<RunView> runs;
  std::optional<ChartsView> charts;
  std::vector<MissingView> not_measured;

  FieldValues fields() const {
    return {
        {"title", title, "The run's title"},
        {"created", created, "When, for people"},
        {"created_iso", created_iso, "When, RFC 3339"},
        {"interrupted", interrupted, "Some run was stopped before its end"},
        {"several_runs", several_runs, "The report joins several runs"},
        {"case_count", case_count, "Cases with an outcome, of those that were asked for"},
        {"one_case", one_case, "It is one"},
        {"failed_count", failed_count, "Of these, not `ok`; empty if none"},
        {"pending_count", pending_count, "Planned and not run; empty if none"},
        {"pending", pending, "Their ids"},
        {"has_emulated", has_emulated, "Some figures come from an emulated card"},
        {"has_sources", !sources.empty(), "Some published figure is shown"},
        {"has_not_measured", !not_measured.empty(), "`not_measured` is not empty"},
        {"has_programs", has_programs, "Some case is a program of anybody's"},
        {"has_strategies", has_strategies, "Some case is a model under strategies"},
        {"mixed", has_emulated && has_measured, "Both: they are never compared with each other"},
        {"fits", fits, "What fits, as `peakbench fit` found it: one a run that it made"},
        {"groups", groups, "One table each: cases that differ by strategy only"},
        {"several_groups", groups.size() > 1, "There is more than one"},
        {"scaling", scaling,
         "How the peak grows, one table each: cases that differ by stack, and by batch size or "
         "sequence length"},
        {"sources", sources, "Published figures' sources, numbered"},
        {"runs", runs, "How the figures were obtained"},
        {"charts", charts,
         "HTML: the library of the interactive chart; absent where Peakbench was built without it"},
        {"not_measured", not_measured, "What was not measured, and why"}};
  }
};

// Without `anatomies` nothing of any trace is shown.
ReportView make_view(const std::vector<records::Run>& runs, const Anatomies& anatomies = {});

}  // namespace peakbench::reports
