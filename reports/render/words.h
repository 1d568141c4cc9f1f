#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "records/case.h"
#include "records/verdict.h"
#include "reports/analysis/timing.h"

namespace peakbench::reports {

// Display names of ids in records, and the order in which categories are stacked. An unknown id is
// shown as it is, with spaces.

std::string category_label(const std::string& category);
// A class of the palette: the category itself, or "other" for one this version does not know.
std::string category_colour(const std::string& category);
// Known categories in the order of the bars (what stays for the whole step first), then the others
// by name.
std::vector<std::string> in_stacking_order(std::vector<std::string> categories);
std::vector<std::size_t> in_stacking_order(std::vector<std::size_t> categories);  // trace::Category

std::string phase_label(const std::string& phase);
std::vector<std::string> in_phase_order(std::vector<std::string> phases);

// Of a program, which ends as it likes, `crashed` is "did not end well".
std::string status_label(records::Status status,
                         records::CaseKind kind = records::CaseKind::kStrategy);

// Does the stack train another problem than the baseline, whatever it keeps of that one?
bool trains_differently(const records::Equivalence& equivalence);
// Whether a promise about training was not checked in this run. `case_id`: the case with this
// `equivalence`. The reference case promises nothing.
bool is_claimed(const records::Equivalence& equivalence, const std::string& case_id);
// For a table: "bit-identical", "bit-identical (claimed)", "as lora, not bit-identical". `held_to`
// is the stack of the reference case, empty if unknown.
std::string equivalence_label(const records::Equivalence& equivalence, const std::string& case_id,
                              const std::string& held_to);
// "1.0e-05 + 1.0e-03 relative"; empty where nothing is allowed.
std::string tolerance_text(const records::Equivalence& equivalence);
std::string spaced(const std::string& identifier);  // "largest_free" -> "largest free"

}  // namespace peakbench::reports

namespace peakbench::analysis {

// Why figures of emulated cases are not exact, in one sentence for several of them.

// Its first reason, or its first condition: the worst. Empty: it has none.
std::string main_reason(const records::Verdict& verdict);

// Verdicts of one kind. `tightest`: the index of the verdict whose missing workspace has the
// smallest margin; the first one if none has a margin.
struct Doubt {
  std::size_t count = 0, tightest = 0;
};
// Those that are not exact; nullptr: a case without a verdict.
std::map<records::VerdictKind, Doubt> doubts_of(
    const std::vector<const records::Verdict*>& verdicts);

}  // namespace peakbench::analysis

namespace peakbench::reports {

// How an interval of a step time's ratio is written.

// "+1.0 to +5.2", per cent; empty without an interval.
std::string interval_text(const statistics::SpeedDifference& difference);
// "2.1": half of its width, in per cent of the reference.
std::string half_width_text(const statistics::SpeedDifference& difference);
// "one round: no interval"; empty where there is an interval.
std::string no_interval_text(const statistics::SpeedDifference& difference);

// What a step makes a device do, in words.

std::string flops_text(std::int64_t flops);  // "5.82 GFLOP"; "0" for none

// What a step does that another, `reference`, does not, or nullptr: that it does at all. Each a few
// words: "recomputes 96.2% of the forward's FLOPs", "FLOPs +32.2%", "copies 0.345 GiB to the host
// and back". Empty: nothing worth a word.
std::vector<std::string> work_costs(const records::StepWork& work,
                                    const records::StepWork* reference);

}  // namespace peakbench::reports
