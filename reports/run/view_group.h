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
  std::string space, label;

  FieldValues fields() const {
    return {{"space", space, "pinned, cpu, cuda:1"},
            {"label", label, "A heading: pinned, host, cuda:1"}};
  }
};

struct NotFiniteView {
  std::string strategy, what, step;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"},
            {"what", what, "not a number, infinite"},
            {"step", step, "From which measured step on, 1-based"}};
  }
};

struct BrokenPromiseView {
  std::string strategy, reason;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"}, {"reason", reason, "What broke its promise"}};
  }
};

struct UnseenMemoryView {
  std::string strategy, by, period, steps;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"},
            {"by", by, "The strategy whose memory takes more steps to be seen whole"},
            {"period", period, "How many"},
            {"steps", steps, "Steps that were measured"}};
  }
};

struct MoreRanksView {
  std::string strategy, text;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"},
            {"text", text,
             "How much of its peak on the most ranks does not shrink with more, in words"}};
  }
};

struct LegendView {
  std::string category, label, colour, column, line;

  FieldValues fields() const {
    return {{"category", category, "Its name in run.json"},
            {"label", label, "In words"},
            {"colour", colour, "A class for the palette"},
            {"column", column, "Its place in a legend of five columns, 0 to 4"},
            {"line", line, "Its line in such a legend"}};
  }
};

struct PhaseLegendView {
  std::string phase, label;

  FieldValues fields() const {
    return {{"phase", phase, "Its name in run.json, a class for the palette"},
            {"label", label, "In words"}};
  }
};

struct GroupView {
  std::string index, anchor, model, device, dtype, batch_size, run_title;
  std::string row_heading, reference, card, cards, row_count, outcome_columns, round_count,
      axis_gib;
  std::string peak_picture, timeline_picture, flame_picture, pareto_picture;
  std::string flame_levels;
  bool reference_out = false, emulated = false, has_throughput = false, has_tokens = false;
  bool has_published = false, has_published_throughput = false, has_reserved = false;
  bool has_verdicts = false, all_exact = false;
  bool has_equivalence = false, has_bars = false, has_timelines = false, has_whys = false;
  bool has_data = false, has_lines = false;
  bool has_intervals = false, has_noise = false, lacks_intervals = false;
  std::vector<SettingView> settings;
  std::vector<BesideColumnView> beside;
  std::optional<BestView> lowest, lowest_same;
  std::optional<FastestView> fastest;
  std::vector<LeftOutView> left_out;
  std::vector<NotFiniteView> not_finite;
  std::vector<VerdictNoteView> verdict_notes;
  std::vector<BrokenPromiseView> broken_promises;
  std::vector<UnseenMemoryView> unseen_memory;
  std::vector<MoreRanksView> more_ranks;
  std::optional<BusyView> busy;
  std::vector<TickView> bar_ticks;
  std::vector<RowView> rows;
  std::vector<AblationView> ablation;
  std::vector<LegendView> categories;
  std::vector<PhaseLegendView> phases;
  std::optional<ParetoView> pareto;
  std::optional<WorkView> work;

  FieldValues fields() const {
    return {
        {"index", index, "0-based"},
        {"anchor", anchor, "An id for links and file names"},
        {"model", model, "Model and options; Programs, of several"},
        {"device", device, "As in the case id"},
        {"dtype", dtype, "The weights' dtype"},
        {"batch_size", batch_size, "Samples a step"},
        {"settings", settings,
         "What else the heading says: dtype, batch size, sequence length, in words"},
        {"row_heading", row_heading, "What its rows are: Strategy, Program"},
        {"run_title", run_title, "Its run, where the report has several"},
        {"row_heading", row_heading,
         "What the rows are: Strategy, Program, Case where there are both"},
        {"reference", reference, "The stack that differences are against"},
        {"reference_out", reference_out,
         "It ran out of memory, and peaks are compared with what it would have allocated"},
        {"emulated", emulated, "Figures from an emulated card"},
        {"card", card, "The emulated card"},
        {"cards", cards, "The real card and its memory; empty for other devices"},
        {"has_throughput", has_throughput, "Some case was timed"},
        {"has_tokens", has_tokens, "Some case has tokens a second"},
        {"has_published", has_published, "Some case has a published peak"},
        {"has_published_throughput", has_published_throughput,
         "Some case has published throughput"},
        {"has_reserved", has_reserved, "Some case has reserved memory"},
        {"has_verdicts", has_verdicts, "Some figure is not exact, or is on a condition"},
        {"all_exact", all_exact, "Every figure of an emulated card here is exact"},
        {"verdict_notes", verdict_notes, "Why figures are not exact, a sentence a reason"},
        {"has_equivalence", has_equivalence, "Some case's training was compared"},
        {"has_bars", has_bars, "Some case has a peak by category"},
        {"has_legend", !categories.empty(), "`categories` is not empty"},
        {"has_timelines", has_timelines, "Some case has a timeline"},
        {"has_whys", has_whys, "Some case has a `why`"},
        {"has_data", has_data, "Some case has `data`"},
        {"timeline_picture", timeline_picture,
         "Markdown: file name of the timelines; empty where there are none"},
        {"has_lines", has_lines, "Some case has `lines`"},
        {"phases", phases, "Those of the timelines"},
        {"flame_picture", flame_picture,
         "Markdown: file name of the flame graphs; empty where there are none"},
        {"flame_levels", flame_levels, "Levels of all flame graphs, with two for each heading"},
        {"has_ablation", !ablation.empty(), "`ablation` is not empty"},
        {"row_count", row_count, "How many rows"},
        {"several_rows", rows.size() > 1, "More than one"},
        {"beside", beside,
         "Spaces beside the device's own with more than a little in them, a column each"},
        {"has_beside", !beside.empty(), "`beside` is not empty"},
        {"outcome_columns", outcome_columns,
         "How many columns a failed case's reason takes the place of"},
        {"lowest", lowest,
         "The case with the least memory allocated at the peak; like the next two never one whose "
         "promise is broken"},
        {"lowest_same", lowest_same,
         "The least memory among those that train as the reference does; absent where `lowest` "
         "does"},
        {"fastest", fastest,
         "The case with the least step time; absent where it has no interval against some other"},
        {"left_out", left_out, "Cases that are no answer: their promise about training is broken"},
        {"has_left_out", !left_out.empty(), "`left_out` is not empty"},
        {"not_finite", not_finite, "Cases whose loss is not finite"},
        {"broken_promises", broken_promises, "Cases that train otherwise than promised"},
        {"unseen_memory", unseen_memory,
         "Cases of fewer steps than it takes to see their memory whole"},
        {"more_ranks", more_ranks, "Stacks that ran on two numbers of ranks or more"},
        {"round_count", round_count, "Rounds of timing; empty where nothing was timed in rounds"},
        {"has_intervals", has_intervals, "Some difference in time has an interval"},
        {"has_noise", has_noise, "Some is not distinguishable from noise"},
        {"lacks_intervals", lacks_intervals, "Some has no interval"},
        {"busy", busy, "Other processes were at work while timing; absent where they were not"},
        {"axis_gib", axis_gib, "The largest peak, for the bars' axis"},
        {"bar_ticks", bar_ticks, "Ticks of the bars' axis"},
        {"rows", rows, "The cases, failed ones too"},
        {"ablation", ablation,
         "Of each stack: what its parts save alone, and what the stack loses without them"},
        {"categories", categories,
         "The legend: categories that occur at a peak or in a timeline, in the order of the bars"},
        {"peak_picture", peak_picture,
         "Markdown: file name of the bars; empty where there are none"},
        {"pareto_picture", pareto_picture,
         "Markdown: file name of memory against throughput; empty where there is none"},
        {"pareto", pareto, "Memory against throughput; absent with fewer than two timed cases"},
        {"work", work, "What a step makes the device do; absent where none was counted"},
        {"has_work", work.has_value(), "There is `work`"}};
  }
};

// `index`: its place in the report. `names_run`: the report has several.
GroupView group_view(const Group& group, std::size_t index, bool names_run,
                     const Anatomies& anatomies, Sources& sources);

// The parts that have sources of their own. `view` has its rows by then.
std::vector<NotFiniteView> not_finite_view(const Group& group);
std::vector<BrokenPromiseView> broken_promises_view(const Group& group);
std::vector<UnseenMemoryView> unseen_memory_view(const Group& group);
std::vector<MoreRanksView> more_ranks_view(const Group& group);
void add_beside(const Group& group, GroupView& view);
void add_timing(const Group& group, GroupView& view);

}  // namespace peakbench::reports
