// A table: the cases of a group, notes on all of them, and its charts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/run/view_row.h"
#include "reports/run/view_stacks.h"
#include "reports/run/view_step.h"

namespace peakbench::reports {

struct BesideColumnView {
  PEAKBENCH_VIEW(text(space, "pinned, cpu, cuda:1"),
                 text(label, "A heading: pinned, host, cuda:1"));
};

struct NotFiniteView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(what, "not a number, infinite"),
                 text(step, "From which measured step on, 1-based"));
};

struct BrokenPromiseView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(reason, "What broke its promise"));
};

struct UnseenMemoryView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(by, "The strategy whose memory takes more steps to be seen whole"),
                 text(period, "How many"),
                 text(steps, "Steps that were measured"));
};

struct MoreRanksView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(text, "How much of its peak on the most ranks does not shrink with more, "
                      "in words"));
};

struct RankView {
  PEAKBENCH_VIEW(text(number, "Of its case"),
                 text(strategy, "The stack, with the number of ranks"),
                 text(global_batch, "Samples of all ranks together; empty where unknown"),
                 text(rank, "Which one"),
                 flag(is_largest, "Its figures are the case's"),
                 text(gib, "Peak of allocated memory"),
                 text(bytes, "The same, exact"),
                 text(reserved_gib, "Peak of reserved memory; empty where unknown"),
                 text(difference, "What it has less at its peak than the largest of its case, the "
                      "category that differs most; empty of that one"),
                 text(communication_gib, "Communication buffers at its peak"),
                 text(nccl, "Its calls of NCCL, with their bytes; empty where unknown"));
};

struct LegendView {
  PEAKBENCH_VIEW(text(category, "Its name in run.json"),
                 text(label, "In words"),
                 text(colour, "A class for the palette"),
                 text(column, "Its place in a legend of five columns, 0 to 4"),
                 text(line, "Its line in such a legend"));
};

struct PhaseLegendView {
  PEAKBENCH_VIEW(text(phase, "Its name in run.json, a class for the palette"),
                 text(label, "In words"));
};

struct GroupView {
  PEAKBENCH_VIEW(
      text(index, "0-based"),
      text(anchor, "An id for links and file names"),
      text(model, "Model and options; Programs, of several"),
      text(device, "As in the case id"),
      text(dtype, "The weights' dtype"),
      text(batch_size, "Samples a step"),
      list(SettingView, settings, "What else the heading says: dtype, batch size, sequence length, "
           "in words"),
      text(row_heading, "What its rows are: Strategy, Program"),
      text(run_title, "Its run, where the report has several"),
      shown("row_heading", row_heading, "What the rows are: Strategy, Program, Case where there "
            "are both"),
      text(reference, "The stack that differences are against"),
      flag(reference_out, "It ran out of memory, and peaks are compared with what it would have "
           "allocated"),
      flag(emulated, "Figures from an emulated card"),
      text(card, "The emulated card"),
      text(cards, "The real card and its memory; empty for other devices"),
      flag(has_throughput, "Some case was timed"),
      flag(has_tokens, "Some case has tokens a second"),
      flag(has_published, "Some case has a published peak"),
      flag(has_published_throughput, "Some case has published throughput"),
      flag(has_reserved, "Some case has reserved memory"),
      flag(has_verdicts, "Some figure is not exact, or is on a condition"),
      flag(all_exact, "Every figure of an emulated card here is exact"),
      list(VerdictNoteView, verdict_notes, "Why figures are not exact, a sentence a reason"),
      flag(has_equivalence, "Some case's training was compared"),
      flag(has_bars, "Some case has a peak by category"),
      shown("has_legend", !categories.empty(), "`categories` is not empty"),
      flag(has_timelines, "Some case has a timeline"),
      flag(has_whys, "Some case has a `why`"),
      flag(has_data, "Some case has `data`"),
      text(timeline_picture, "Markdown: file name of the timelines; empty without timelines"),
      flag(has_lines, "Some case has `lines`"),
      list(PhaseLegendView, phases, "The phases that the timelines show"),
      text(flame_picture, "Markdown: file name of the flame graphs; empty without flame graphs"),
      text(flame_levels, "Levels of all flame graphs, with two for each heading"),
      shown("has_ablation", !ablation.empty(), "`ablation` is not empty"),
      text(row_count, "How many rows"),
      shown("several_rows", rows.size() > 1, "More than one"),
      list(BesideColumnView, beside, "Spaces beside the device's own with more than a little in "
           "them, a column each"),
      shown("has_beside", !beside.empty(), "`beside` is not empty"),
      text(outcome_columns, "How many columns a failed case's reason takes the place of"),
      maybe(BestView, lowest, "The case with the least memory allocated at the peak; like the next "
            "two never one whose promise is broken"),
      maybe(BestView, lowest_same, "The least memory among those that train as the reference does; "
            "absent where `lowest` does"),
      maybe(FastestView, fastest, "The case with the least step time; absent where it has no "
            "interval against some other"),
      list(LeftOutView, left_out, "Cases that are no answer: their promise about training is "
           "broken"),
      shown("has_left_out", !left_out.empty(), "`left_out` is not empty"),
      list(NotFiniteView, not_finite, "Cases whose loss is not finite"),
      list(BrokenPromiseView, broken_promises, "Cases that train otherwise than promised"),
      list(UnseenMemoryView, unseen_memory, "Cases of fewer steps than it takes to see their "
           "memory whole"),
      list(MoreRanksView, more_ranks, "Stacks that ran on two numbers of ranks or more"),
      list(RankView, ranks, "The processes of cases of several ranks"),
      shown("has_ranks", !ranks.empty(), "`ranks` is not empty"),
      text(round_count, "Rounds of timing; empty where nothing was timed in rounds"),
      flag(has_intervals, "Some difference in time has an interval"),
      flag(has_noise, "Some is not distinguishable from noise"),
      flag(lacks_intervals, "Some has no interval"),
      maybe(BusyView, busy, "Other processes were at work while timing; absent where they were "
            "not"),
      text(axis_gib, "The largest peak, for the bars' axis"),
      list(TickView, bar_ticks, "Ticks of the bars' axis"),
      list(RowView, rows, "The cases, failed ones too"),
      list(AblationView, ablation, "Of each stack: what its parts save alone, and what the stack "
           "loses without them"),
      list(LegendView, categories, "The legend: categories that occur at a peak or in a timeline, "
           "in the order of the bars"),
      text(peak_picture, "Markdown: file name of the bars; empty without bars"),
      text(pareto_picture, "Markdown: file name of memory against throughput; empty without one"),
      maybe(ParetoView, pareto, "Memory against throughput; absent with fewer than two timed "
            "cases"),
      maybe(WorkView, work, "What a step makes the device do; absent where none was counted"),
      shown("has_work", work.has_value(), "There is `work`"));
};

// `index`: its place in the report. `names_run`: the report has several.
GroupView group_view(const Group& group, std::size_t index, bool names_run,
                     const Anatomies& anatomies, Sources& sources);

// These have sources of their own. `view` has its rows by then.
std::vector<MoreRanksView> more_ranks_view(const Group& group);
std::vector<RankView> ranks_view(const Group& group);
void add_timing(const Group& group, GroupView& view);

}  // namespace peakbench::reports
