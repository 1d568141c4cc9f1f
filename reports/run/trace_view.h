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
  std::string label, colour, path;

  FieldValues fields() const {
    return {{"label", label, "The category in words"},
            {"colour", colour, "A class for the palette"},
            {"path", path, "An SVG path"}};
  }
};

struct BandView {
  std::string phase, label, step, x, width;
  bool starts_step = false;

  FieldValues fields() const {
    return {{"phase", phase,
             "build, forward, backward, optimizer_step; of programs also data, evaluation, "
             "generation, checkpoint"},
            {"label", label, "In words"},
            {"step", step, "1-based; empty while building"},
            {"starts_step", starts_step, "A step begins here"},
            {"x", x, "Where it begins"},
            {"width", width, "How wide it is"}};
  }
};

struct TimelineView {
  std::string events, peak_event, peak_x, peak_y;
  std::vector<AreaView> areas;
  std::vector<BandView> bands;

  FieldValues fields() const {
    return {
        {"areas", areas, "Categories, the topmost first: each path covers what lies under it, too"},
        {"bands", bands, "Phases in order"},
        {"events", events, "How many allocations and frees"},
        {"peak_event", peak_event, "The event of the peak"},
        {"peak_x", peak_x, "The peak's place"},
        {"peak_y", peak_y, "The peak's place"}};
  }
};

struct AliveRowView {
  std::string depth, kind, label, colour, gib, bytes, percent, count;
  bool several = false;

  FieldValues fields() const {
    return {{"depth", depth, "0 is outermost"},
            {"kind", kind, "module, operator, allocation, rest"},
            {"label", label, "Its name"},
            {"colour", colour, "Allocations: a class for the palette"},
            {"gib", gib, "GiB"},
            {"bytes", bytes, "The exact count"},
            {"percent", percent, "Of the peak"},
            {"count", count, "Allocations at or below it"},
            {"several", several, "More than one"}};
  }
};

struct AllocationView {
  std::string name, module, op, category, colour, phase, shape, dtype, gib, bytes, percent;

  FieldValues fields() const {
    return {{"name", name, "Its name, empty where it has none"},
            {"module", module, "Where"},
            {"op", op, "By which operator"},
            {"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"phase", phase, "The phase that allocated it"},
            {"shape", shape, "Where known"},
            {"dtype", dtype, "Where known"},
            {"gib", gib, "GiB"},
            {"bytes", bytes, "The exact count"},
            {"percent", percent, "Of the peak"}};
  }
};

struct AliveCauseView {
  std::string text, category, colour, gib, bytes, percent;
  bool is_category = false;

  FieldValues fields() const {
    return {{"text", text, "What alike allocations have in common: `encoder.layers.*, 24 tensors`"},
            {"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"gib", gib, "GiB"},
            {"bytes", bytes, "The exact count"},
            {"percent", percent, "Of the peak"},
            {"is_category", is_category, "A category's sum, what it is made of follows"}};
  }
};

struct AliveView {
  std::string count;
  std::vector<AliveCauseView> folded;
  std::vector<AliveRowView> tree;
  std::vector<AllocationView> largest;

  FieldValues fields() const {
    return {
        {"count", count, "How many allocations"},
        {"folded", folded,
         "By category, layers folded, the largest first; what is below one per cent as one row"},
        {"tree", tree, "Modules, operators, allocations, flattened: from one per cent of the peak"},
        {"largest", largest, "The largest single allocations"}};
  }
};

struct FallView {
  std::string category, colour, phase, gib, bytes, start, width;
  bool less = false;

  FieldValues fields() const {
    return {{"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"phase", phase, "The phase that allocated it"},
            {"gib", gib, "Signed GiB"},
            {"bytes", bytes, "Signed exact bytes"},
            {"less", less, "A saving"},
            {"start", start, "Where its bar starts, 0 to 1"},
            {"width", width, "How wide it is, 0 to 1"}};
  }
};

struct WaterfallView {
  std::string from_gib, from_width, to_gib, to_width;
  std::vector<FallView> steps;

  FieldValues fields() const {
    return {{"from_gib", from_gib, "The reference's peak"},
            {"from_width", from_width, "As a fraction of the widest"},
            {"to_gib", to_gib, "This peak"},
            {"to_width", to_width, "As a fraction of the widest"},
            {"steps", steps, "Savings first, then what was added"}};
  }
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
