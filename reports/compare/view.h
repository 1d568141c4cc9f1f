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
  PEAKBENCH_VIEW(text(label, "Where it was read from"),
                 text(title, "The run's title"),
                 text(created, "When it was made"),
                 text(commit, "Of which commit"));
};

struct GateView {
  PEAKBENCH_VIEW(text(label, "passed, regression, failed case, unusable"),
                 flag(passed, "It lets the change pass"),
                 texts(findings, "Why not, the first few"),
                 text(more_findings, "How many are not shown; empty for none"));
};

struct ChangeView {
  PEAKBENCH_VIEW(text(name, "What"),
                 text(base, "In BASE"),
                 text(now, "In NEW"),
                 text(cases, "Settings of cases: `2 cases`; else empty"));
};

struct FigureView {
  PEAKBENCH_VIEW(text(where, "peak or the phase; `peak of SPACE` for another space"),
                 text(figure, "requested, allocated or reserved"),
                 text(name, "Both: `forward requested`"),
                 text(base_gib, "BASE in GiB"),
                 text(base_bytes, "The exact count"),
                 text(now_gib, "NEW in GiB"),
                 text(now_bytes, "The exact count"),
                 text(difference, "Signed, in bytes or GiB, with its unit"),
                 text(difference_bytes, "The exact count"),
                 text(allowed, "What the policy lets pass; empty for nothing"),
                 text(verdict, "worse, better, same"),
                 flag(worse, "More than allowed"),
                 flag(better, "Less, by more than the tolerance"),
                 flag(changed, "Not the same number"),
                 flag(not_held, "A phase's, where the policy holds the peak alone"));
};

struct CategoryView {
  PEAKBENCH_VIEW(text(label, "The category in words"),
                 text(colour, "A class for the palette"),
                 text(base_gib, "BASE in GiB"),
                 text(now_gib, "NEW in GiB"),
                 text(difference, "Signed, with its unit"),
                 text(difference_bytes, "The exact count"),
                 flag(worse, "It grew"),
                 flag(changed, "Not the same number"));
};

struct PartView {
  PEAKBENCH_VIEW(text(allocated, "Signed difference of blocks, with its unit"),
                 text(requested, "Signed difference of bytes asked for, with its unit"),
                 text(category, "In words"),
                 text(colour, "A class for the palette"),
                 text(phase, "In which phase it was allocated"),
                 text(module, "In which module"),
                 text(op, "By which operator"),
                 flag(more, "It grew"));
};

struct AppearedView {
  PEAKBENCH_VIEW(text(count, "How many alike"),
                 text(requested, "Bytes asked for, each"),
                 text(allocated, "Bytes of its block, each"),
                 text(gib, "The block in GiB"),
                 text(category, "In words"),
                 text(colour, "A class for the palette"),
                 text(phase, "In which phase it was allocated"),
                 text(module, "In which module"),
                 text(op, "By which operator"),
                 text(name, "The recipe's name for it; empty where it has none"),
                 text(shape, "Where known"),
                 text(dtype, "Where known"),
                 flag(gone, "It is BASE's and not NEW's"));
};

struct CauseView {
  PEAKBENCH_VIEW(text(allocated, "Signed difference of blocks, with its unit"),
                 text(requested, "Signed difference of bytes asked for, with its unit"),
                 text(text, "`*.exp_avg, bf16 -> fp32, 250 tensors`; how many more are not shown"),
                 text(category, "In words"),
                 text(colour, "A class for the palette"),
                 flag(is_category, "The sum of a category, whose causes follow"),
                 flag(is_part, "One of the causes that such a sum is of"),
                 flag(more, "It grew"));
};

struct GrowthView {
  PEAKBENCH_VIEW(text(where, "`at the peak, in optimizer step`, `at the maximum of forward`"),
                 text(phase, "The phase, in words"),
                 flag(worse, "One of its figures is worse"),
                 text(allocated, "Sum of the differences of blocks"),
                 text(requested, "Sum of the differences of bytes asked for"),
                 list(CauseView, causes, "Parts folded, by category: they sum to the difference"),
                 list(PartView, parts, "Single parts, the largest difference first, grown or "
                      "shrunk"),
                 shown("has_parts", !parts.empty(), "`parts` is not empty"),
                 text(more_parts, "How many are not shown; empty for none"),
                 list(AppearedView, appeared, "Allocations alive at the maximum of one run only"),
                 shown("has_appeared", !appeared.empty(), "`appeared` is not empty"),
                 text(more_appeared, "How many are not shown; empty for none"));
};

struct LineChangeView {
  PEAKBENCH_VIEW(text(line, "`train.py:42`, without the folder that all files are in"),
                 text(function, "The function that it is in"),
                 text(difference, "Signed, with its unit"),
                 text(difference_bytes, "The exact count"),
                 text(base_gib, "What it held at BASE's peak"),
                 text(now_gib, "What it holds at NEW's"),
                 flag(more, "It grew"));
};

struct SpeedView {
  PEAKBENCH_VIEW(text(verdict, "worse, better, same, unknown"),
                 flag(worse, "Slower"),
                 flag(better, "Faster"),
                 text(base_ms, "BASE's median step"),
                 text(now_ms, "NEW's median step"),
                 text(ratio, "Signed per cent"),
                 text(text, "With the interval, and why nothing is known"));
};

struct TraceRowView {
  PEAKBENCH_VIEW(text(anchor, "An id"),
                 text(strategy, "NEW or BASE"),
                 text(data, "The packed trace"));
};

struct CaseView {
  PEAKBENCH_VIEW(text(index, "0-based, in the page"),
                 text(anchor, "An id for links, unique in the page"),
                 text(id, "The case id"),
                 flag(emulated, "Figures from an emulated card"),
                 text(state, "What became of it, in a word or two"),
                 flag(bad, "Not compared, failed, missing or worse"),
                 flag(good, "Better"),
                 text(reason, "Why it failed, is missing or is not compared"),
                 text(reliance, "That the figures can be relied on less, or more, than before; "
                      "else empty"),
                 maybe(FigureView, peak, "Peak allocated"),
                 maybe(FigureView, telling, "The figure that it is worse or better for; absent "
                       "where that is `peak`"),
                 list(FigureView, figures, "Every peak of memory"),
                 flag(has_changed_figures, "Some of `figures` changed"),
                 list(CategoryView, categories, "The peak by category, both runs"),
                 list(GrowthView, growth, "What grew, by phase"),
                 list(LineChangeView, lines, "Of programs: lines of code whose bytes at the peak "
                      "differ, the largest first"),
                 shown("has_lines", !lines.empty(), "`lines` is not empty"),
                 text(more_lines, "How many are not shown; empty for none"),
                 text(growth_note, "Why it is not known what grew"),
                 maybe(SpeedView, speed, "Step times; absent where one of the two has none"),
                 maybe(OverlayView, overlay, "HTML: both timelines in a box 1000 wide and high; "
                       "absent without both traces"),
                 shown("has_data", !rows.empty(), "HTML: `rows` is not empty"),
                 list(TraceRowView, rows, "HTML: NEW and BASE for the interactive chart"));
};

struct ComparisonView {
  PEAKBENCH_VIEW(text(title, "NEW's title"),
                 object(SideView, base, "The run compared with"),
                 object(SideView, now, "The new run"),
                 text(summary, "What happened, in one line"),
                 maybe(GateView, gate, "What `peakbench gate` says; absent otherwise"),
                 list(ChangeView, changes, "What else differs: versions, machine, settings"),
                 shown("has_changes", !changes.empty(), "`changes` is not empty"),
                 texts(settings, "Of `changes` the settings, a text each: `steps: 1 -> 3`"),
                 shown("has_settings", !settings.empty(), "`settings` is not empty"),
                 texts(notes, "What a reader must know"),
                 flag(has_emulated, "Some figures come from an emulated card"),
                 flag(has_times, "Some case was timed in both"),
                 text(case_count, "Cases of either run"),
                 list(CaseView, changed, "Cases that are not the same, the gravest first"),
                 text(changed_count, "How many; empty for none"),
                 text(more_changed, "How many of them are not shown; empty for none"),
                 list(CaseView, same, "Cases that are the same"),
                 text(same_count, "How many; empty for none"),
                 text(more_same, "How many of them are not shown; empty for none"),
                 maybe(reports::ChartsView, charts, "HTML: the library of the interactive chart"));
};

ComparisonView make_view(const Comparison& comparison, const PageOptions& options);

}  // namespace peakbench::compare
