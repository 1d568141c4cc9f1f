// A comparison as templates show it (reports/render/record.h). Every text is safe to show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/compare/overlay.h"
#include "reports/compare/render.h"
#include "reports/run/report.h"

namespace peakbench::compare {

struct SideView {
  std::string label, title, created, commit;

  FieldValues fields() const {
    return {{"label", label, "Where it was read from"},
            {"title", title, "The run's title"},
            {"created", created, "When it was made"},
            {"commit", commit, "Of which commit"}};
  }
};

struct GateView {
  std::string label;
  bool passed = false;
  std::vector<std::string> findings;
  std::string more_findings;

  FieldValues fields() const {
    return {{"label", label, "passed, regression, failed case, unusable"},
            {"passed", passed, "It lets the change pass"},
            {"findings", findings, "Why not, the first few"},
            {"more_findings", more_findings, "How many are not shown; empty for none"}};
  }
};

struct ChangeView {
  std::string name, base, now, cases;

  FieldValues fields() const {
    return {{"name", name, "What"},
            {"base", base, "In BASE"},
            {"now", now, "In NEW"},
            {"cases", cases, "Settings of cases: `2 cases`; else empty"}};
  }
};

struct FigureView {
  std::string where, figure, name, base_gib, base_bytes, now_gib, now_bytes;
  std::string difference, difference_bytes, allowed, verdict;
  bool worse = false, better = false, changed = false, not_held = false;

  FieldValues fields() const {
    return {{"where", where, "peak or the phase; `peak of SPACE` for another space"},
            {"figure", figure, "requested, allocated or reserved"},
            {"name", name, "Both: `forward requested`"},
            {"base_gib", base_gib, "BASE in GiB"},
            {"base_bytes", base_bytes, "The exact count"},
            {"now_gib", now_gib, "NEW in GiB"},
            {"now_bytes", now_bytes, "The exact count"},
            {"difference", difference, "Signed, in bytes or GiB, with its unit"},
            {"difference_bytes", difference_bytes, "The exact count"},
            {"allowed", allowed, "What the policy lets pass; empty for nothing"},
            {"verdict", verdict, "worse, better, same"},
            {"worse", worse, "More than allowed"},
            {"better", better, "Less, by more than the tolerance"},
            {"changed", changed, "Not the same number"},
            {"not_held", not_held, "A phase's, where the policy holds the peak alone"}};
  }
};

struct CategoryView {
  std::string label, colour, base_gib, now_gib, difference, difference_bytes;
  bool worse = false, changed = false;

  FieldValues fields() const {
    return {{"label", label, "The category in words"},
            {"colour", colour, "A class for the palette"},
            {"base_gib", base_gib, "BASE in GiB"},
            {"now_gib", now_gib, "NEW in GiB"},
            {"difference", difference, "Signed, with its unit"},
            {"difference_bytes", difference_bytes, "The exact count"},
            {"worse", worse, "It grew"},
            {"changed", changed, "Not the same number"}};
  }
};

struct PartView {
  std::string allocated, requested, category, colour, phase, module, op;
  bool more = false;

  FieldValues fields() const {
    return {{"allocated", allocated, "Signed difference of blocks, with its unit"},
            {"requested", requested, "Signed difference of bytes asked for, with its unit"},
            {"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"phase", phase, "In which phase it was allocated"},
            {"module", module, "In which module"},
            {"op", op, "By which operator"},
            {"more", more, "It grew"}};
  }
};

struct AppearedView {
  std::string count, requested, allocated, gib, category, colour, phase, module, op;
  std::string name, shape, dtype;
  bool gone = false;

  FieldValues fields() const {
    return {{"count", count, "How many alike"},
            {"requested", requested, "Bytes asked for, each"},
            {"allocated", allocated, "Bytes of its block, each"},
            {"gib", gib, "The block in GiB"},
            {"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"phase", phase, "In which phase it was allocated"},
            {"module", module, "In which module"},
            {"op", op, "By which operator"},
            {"name", name, "The recipe's name for it; empty where it has none"},
            {"shape", shape, "Where known"},
            {"dtype", dtype, "Where known"},
            {"gone", gone, "It is BASE's and not NEW's"}};
  }
};

struct CauseView {
  std::string allocated, requested, text, category, colour;
  bool is_category = false, is_part = false, more = false;

  FieldValues fields() const {
    return {{"allocated", allocated, "Signed difference of blocks, with its unit"},
            {"requested", requested, "Signed difference of bytes asked for, with its unit"},
            {"text", text, "`*.exp_avg, bf16 -> fp32, 250 tensors`; how many more are not shown"},
            {"category", category, "In words"},
            {"colour", colour, "A class for the palette"},
            {"is_category", is_category, "The sum of a category, whose causes follow"},
            {"is_part", is_part, "One of the causes that such a sum is of"},
            {"more", more, "It grew"}};
  }
};

struct GrowthView {
  std::string where, phase;
  bool worse = false;
  std::string allocated, requested;
  std::vector<CauseView> causes;
  std::vector<PartView> parts;
  std::string more_parts;
  std::vector<AppearedView> appeared;
  std::string more_appeared;

  FieldValues fields() const {
    return {{"where", where, "`at the peak, in optimizer step`, `at the maximum of forward`"},
            {"phase", phase, "The phase, in words"},
            {"worse", worse, "One of its figures is worse"},
            {"allocated", allocated, "Sum of the differences of blocks"},
            {"requested", requested, "Sum of the differences of bytes asked for"},
            {"causes", causes, "Parts folded, by category: they sum to the difference"},
            {"parts", parts, "Single parts, the largest difference first, grown or shrunk"},
            {"has_parts", !parts.empty(), "`parts` is not empty"},
            {"more_parts", more_parts, "How many are not shown; empty for none"},
            {"appeared", appeared, "Allocations alive at the maximum of one run only"},
            {"has_appeared", !appeared.empty(), "`appeared` is not empty"},
            {"more_appeared", more_appeared, "How many are not shown; empty for none"}};
  }
};

struct LineChangeView {
  std::string line, function, difference, difference_bytes, base_gib, now_gib;
  bool more = false;

  FieldValues fields() const {
    return {{"line", line, "`train.py:42`, without the folder that all files are in"},
            {"function", function, "The function that it is in"},
            {"difference", difference, "Signed, with its unit"},
            {"difference_bytes", difference_bytes, "The exact count"},
            {"base_gib", base_gib, "What it held at BASE's peak"},
            {"now_gib", now_gib, "What it holds at NEW's"},
            {"more", more, "It grew"}};
  }
};

struct SpeedView {
  std::string verdict, base_ms, now_ms, ratio, text;
  bool worse = false, better = false;

  FieldValues fields() const {
    return {{"verdict", verdict, "worse, better, same, unknown"},
            {"worse", worse, "Slower"},
            {"better", better, "Faster"},
            {"base_ms", base_ms, "BASE's median step"},
            {"now_ms", now_ms, "NEW's median step"},
            {"ratio", ratio, "Signed per cent"},
            {"text", text, "With the interval, and why nothing is known"}};
  }
};

struct TraceRowView {
  std::string anchor, strategy, data;

  FieldValues fields() const {
    return {{"anchor", anchor, "An id"},
            {"strategy", strategy, "NEW or BASE"},
            {"data", data, "The packed trace"}};
  }
};

struct CaseView {
  std::string index, anchor, id, state, reason, growth_note, reliance;
  bool emulated = false, bad = false, good = false, has_changed_figures = false;
  std::optional<FigureView> peak, telling;
  std::vector<FigureView> figures;
  std::vector<CategoryView> categories;
  std::vector<GrowthView> growth;
  std::vector<LineChangeView> lines;
  std::string more_lines;
  std::optional<SpeedView> speed;
  std::optional<OverlayView> overlay;
  std::vector<TraceRowView> rows;

  FieldValues fields() const {
    return {{"index", index, "0-based, in the page"},
            {"anchor", anchor, "An id for links, unique in the page"},
            {"id", id, "The case id"},
            {"emulated", emulated, "Figures from an emulated card"},
            {"state", state, "What became of it, in a word or two"},
            {"bad", bad, "Not compared, failed, missing or worse"},
            {"good", good, "Better"},
            {"reason", reason, "Why it failed, is missing or is not compared"},
            {"reliance", reliance,
             "That the figures can be relied on less, or more, than before; else empty"},
            {"peak", peak, "Peak allocated"},
            {"telling", telling,
             "The figure that it is worse or better for; absent where that is `peak`"},
            {"figures", figures, "Every peak of memory"},
            {"has_changed_figures", has_changed_figures, "Some of `figures` changed"},
            {"categories", categories, "The peak by category, both runs"},
            {"growth", growth, "What grew, by phase"},
            {"lines", lines,
             "Of programs: lines of code whose bytes at the peak differ, the largest first"},
            {"has_lines", !lines.empty(), "`lines` is not empty"},
            {"more_lines", more_lines, "How many are not shown; empty for none"},
            {"growth_note", growth_note, "Why it is not known what grew"},
            {"speed", speed, "Step times; absent where one of the two has none"},
            {"overlay", overlay,
             "HTML: both timelines in a box 1000 wide and high; absent without both traces"},
            {"has_data", !rows.empty(), "HTML: `rows` is not empty"},
            {"rows", rows, "HTML: NEW and BASE for the interactive chart"}};
  }
};

struct ComparisonView {
  std::string title, summary;
  SideView base, now;
  std::optional<GateView> gate;
  std::vector<ChangeView> changes;
  std::vector<std::string> settings;
  std::vector<std::string> notes;
  bool has_emulated = false, has_times = false;
  std::string case_count, changed_count, more_changed, same_count, more_same;
  std::vector<CaseView> changed, same;
  std::optional<reports::ChartsView> charts;

  FieldValues fields() const {
    return {{"title", title, "NEW's title"},
            {"base", base, "The run compared with"},
            {"now", now, "The new run"},
            {"summary", summary, "What happened, in one line"},
            {"gate", gate, "What `peakbench gate` says; absent otherwise"},
            {"changes", changes, "What else differs: versions, machine, settings"},
            {"has_changes", !changes.empty(), "`changes` is not empty"},
            {"settings", settings, "Of `changes` the settings, a text each: `steps: 1 -> 3`"},
            {"has_settings", !settings.empty(), "`settings` is not empty"},
            {"notes", notes, "What a reader must know"},
            {"has_emulated", has_emulated, "Some figures come from an emulated card"},
            {"has_times", has_times, "Some case was timed in both"},
            {"case_count", case_count, "Cases of either run"},
            {"changed", changed, "Cases that are not the same, the gravest first"},
            {"changed_count", changed_count, "How many; empty for none"},
            {"more_changed", more_changed, "How many of them are not shown; empty for none"},
            {"same", same, "Cases that are the same"},
            {"same_count", same_count, "How many; empty for none"},
            {"more_same", more_same, "How many of them are not shown; empty for none"},
            {"charts", charts, "HTML: the library of the interactive chart"}};
  }
};

ComparisonView make_view(const Comparison& comparison, const PageOptions& options);

}  // namespace peakbench::compare
