// What reports show of a trace: the timeline, what was alive at the peak, why the peak is where it
// is. One trace is in memory at a time; what is kept of it is small.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "records/run.h"
#include "reports/analysis/causes.h"
#include "reports/render/record.h"
#include "reports/run/view_lines.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace peakbench::reports {

struct AreaView {
  PEAKBENCH_VIEW(text(label, "The category in words"),
                 text(colour, "A class for the palette"),
                 text(path, "An SVG path"));
};

struct BandView {
  PEAKBENCH_VIEW(text(phase, "build, forward, backward, optimizer_step; of programs also data, "
                      "evaluation, generation, checkpoint"),
                 text(label, "In words"),
                 text(step, "1-based; empty while building"),
                 flag(starts_step, "A step begins here"),
                 text(x, "Where it begins"),
                 text(width, "How wide it is"));
};

struct TimelineView {
  PEAKBENCH_VIEW(list(AreaView, areas, "Categories, the topmost first: each path covers what lies "
                      "under it, too"),
                 list(BandView, bands, "Phases in order"),
                 text(events, "How many allocations and frees"),
                 text(peak_event, "The event of the peak"),
                 text(peak_x, "The peak's place"),
                 text(peak_y, "The peak's place"));
};

struct AliveRowView {
  PEAKBENCH_VIEW(text(depth, "0 is outermost"),
                 text(kind, "module, operator, allocation, rest"),
                 text(label, "Its name"),
                 text(colour, "Allocations: a class for the palette"),
                 text(gib, "GiB"),
                 text(bytes, "The exact count"),
                 text(percent, "Of the peak"),
                 text(count, "Allocations at or below it"),
                 flag(several, "More than one"));
};

struct AllocationView {
  PEAKBENCH_VIEW(text(name, "Its name, empty where it has none"),
                 text(module, "Where"),
                 text(op, "By which operator"),
                 text(category, "In words"),
                 text(colour, "A class for the palette"),
                 text(phase, "The phase that allocated it"),
                 text(shape, "Where known"),
                 text(dtype, "Where known"),
                 text(gib, "GiB"),
                 text(bytes, "The exact count"),
                 text(percent, "Of the peak"));
};

struct AliveCauseView {
  PEAKBENCH_VIEW(text(text, "What alike allocations have in common: `encoder.layers.*, 24 "
                      "tensors`"),
                 text(category, "In words"),
                 text(colour, "A class for the palette"),
                 text(gib, "GiB"),
                 text(bytes, "The exact count"),
                 text(percent, "Of the peak"),
                 flag(is_category, "A category's sum, what it is made of follows"));
};

struct AliveView {
  PEAKBENCH_VIEW(text(count, "How many allocations"),
                 list(AliveCauseView, folded, "By category, layers folded, the largest first; what "
                      "is below one per cent as one row"),
                 list(AliveRowView, tree, "Modules, operators, allocations, flattened: from one "
                      "per cent of the peak"),
                 list(AllocationView, largest, "The largest single allocations"));
};

struct FallView {
  PEAKBENCH_VIEW(text(category, "In words"),
                 text(colour, "A class for the palette"),
                 text(phase, "The phase that allocated it"),
                 text(gib, "Signed GiB"),
                 text(bytes, "Signed exact bytes"),
                 flag(less, "A saving"),
                 text(start, "Where its bar starts, 0 to 1"),
                 text(width, "How wide it is, 0 to 1"));
};

struct WaterfallView {
  PEAKBENCH_VIEW(text(from_gib, "The reference's peak"),
                 text(from_width, "As a fraction of the widest"),
                 text(to_gib, "This peak"),
                 text(to_width, "As a fraction of the widest"),
                 list(FallView, steps, "Savings first, then what was added"));
};

struct CaseAnatomy {
  trace::Anatomy anatomy;
  trace::Timeline timeline;  // a few hundred samples, for pictures
  std::vector<trace::PhaseSpan> spans;
  std::uint64_t events = 0;
  std::map<trace::Phase, analysis::Fold> folds;  // composition of each phase's maximum
  std::optional<AliveView> alive;
  std::optional<LinesView> lines;  // where call stacks were recorded
  std::string data;   // for the interactive chart (reports/run/trace_data.h), may be empty
  std::string note;   // why there is nothing of the above: then all of it is empty
  std::string cause;  // the same without names of this case, so that many of one cause are one line
  bool known() const { return note.empty(); }
};

using Anatomies = std::map<const records::CaseResult*, CaseAnatomy>;

// Reads the traces of all cases that have one. `folders`: the runs' own; an empty one has no
// traces. A trace that is missing, broken or of another run leaves a note, never an exception.
// `with_data`: for the interactive chart, too.
Anatomies read_anatomies(const std::vector<records::Run>& runs,
                         const std::vector<std::string>& folders, bool with_data);
// Of programs, and of what is run with several releases or builds, without data: a terminal shows
// nothing of the others' traces.
Anatomies read_anatomies_for_terminal(const std::vector<records::Run>& runs,
                                      const std::vector<std::string>& folders);

// From an open trace; throws TraceError where it does not add up.
CaseAnatomy analyse(const trace::Trace& trace, bool with_data, bool whole);

// `highest`: the bytes at the top of the picture. nullopt without a timeline.
std::optional<TimelineView> timeline_view(const CaseAnatomy& anatomy, std::int64_t highest);
std::vector<std::string> categories_of(const CaseAnatomy& anatomy);  // that occur in its timeline
WaterfallView waterfall_view(const CaseAnatomy& reference, const CaseAnatomy& strategy);
AliveView alive_view(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                     std::uint64_t event);

}  // namespace peakbench::reports
