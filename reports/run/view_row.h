// One row: a case, its figures compared with the reference, and the published ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/run/group.h"
#include "reports/run/trace_view.h"
#include "reports/run/view_step.h"

namespace peakbench::reports {

struct StackPartView {
  std::string name, base, options;
  bool first = false;

  FieldValues fields() const {
    return {{"name", name, "The strategy with its options"},
            {"base", base, "Without them"},
            {"options", options, "They alone, from the comma on"},
            {"first", first, "The first of the stack"}};
  }
};

struct BesideView {
  std::string label, gib, bytes;

  FieldValues fields() const {
    return {{"label", label, "The column's"},
            {"gib", gib, "Peak allocated there"},
            {"bytes", bytes, "The exact count"}};
  }
};

struct PublishedView {
  std::string original, gib, value, unit, off_percent, source, url, note, number;

  FieldValues fields() const {
    return {{"original", original, "As published, with its unit"},
            {"gib", gib, "Memory: converted to GiB"},
            {"value", value, "Throughput: as published"},
            {"unit", unit, "The unit as published"},
            {"off_percent", off_percent,
             "Ours against the published figure, signed per cent; empty where they cannot be "
             "compared"},
            {"source", source, "Who published it"},
            {"url", url, "Where (http or https only)"},
            {"note", note, "What to know about it"},
            {"number", number, "The number of its source in `sources`"}};
  }
};

struct EquivalenceView {
  std::string label, verdict, max_abs_difference, tolerance, reason;
  bool held = false, broken = false, not_checked = false, different = false;

  FieldValues fields() const {
    return {{"label", label, "Promise and verdict in words"},
            {"verdict", verdict, "held, broken, not_checked"},
            {"held", held, "The promise held"},
            {"broken", broken, "The promise is broken"},
            {"not_checked", not_checked, "The promise is claimed: nothing was compared here"},
            {"different", different,
             "Trains another problem than the baseline; its promise is then held against the "
             "parts that make it so, if it has others"},
            {"max_abs_difference", max_abs_difference,
             "Largest difference seen, `not a number` where it is none"},
            {"tolerance", tolerance, "Largest difference allowed: absolute, `+`, relative"},
            {"reason", reason, "Why not checked, or what broke"}};
  }
};

struct SegmentView {
  std::string category, label, colour, gib, bytes, percent, start, width;

  FieldValues fields() const {
    return {{"category", category, "The category's name in run.json"},
            {"label", label, "The same in words"},
            {"colour", colour, "A class for the palette: a known category, or `other`"},
            {"gib", gib, "GiB, three decimals"},
            {"bytes", bytes, "The exact count"},
            {"percent", percent, "Per cent of the case's peak"},
            {"start", start, "Where it starts, as a fraction of the table's widest bar"},
            {"width", width, "Its width, as a fraction of the table's widest bar"}};
  }
};

struct PhaseView {
  std::string phase, label, gib, bytes, width;
  bool is_peak = false;

  FieldValues fields() const {
    return {{"phase", phase,
             "build, forward, backward, optimizer_step; of programs also data, evaluation, "
             "generation, checkpoint"},
            {"label", label, "The same in words"},
            {"gib", gib, "Peak allocated in the phase"},
            {"bytes", bytes, "The exact count"},
            {"width", width, "As a fraction of the case's largest phase"},
            {"is_peak", is_peak, "The case's peak is here"}};
  }
};

struct SpaceView {
  std::string space, gib, bytes;

  FieldValues fields() const {
    return {{"space", space, "cuda:0, cpu, pinned"},
            {"gib", gib, "Peak allocated"},
            {"bytes", bytes, "The exact count"}};
  }
};

struct RowView {
  std::string index, number, anchor, id, strategy, name, build, short_name, status, status_label,
      reason;
  std::string bar, peak_phase, peak_step, steps;
  std::string step_ms, step_min_ms, step_p90_ms, step_count;
  std::string samples_per_second, tokens_per_second, clock, threads, throughput_reason;
  std::string wall, trace, trace_note, why, data;
  bool is_reference = false, ok = false, is_lowest = false, has_facts = false;
  std::optional<BytesView> needed, needed_allocated, least, peak, requested, reserved, rss;
  std::optional<DeltaView> delta;
  std::optional<TimeView> time;
  std::optional<EquivalenceView> equivalence;
  std::optional<VerdictView> verdict;
  std::optional<TimelineView> timeline;
  std::optional<AliveView> alive;
  std::optional<LinesView> lines;
  std::optional<WaterfallView> waterfall;
  std::vector<StackPartView> parts;
  std::vector<BesideView> beside;
  std::vector<RoundView> rounds;
  std::vector<PublishedView> published_memory, published_throughput;
  std::vector<SegmentView> segments;
  std::vector<PhaseView> phases;
  std::vector<SpaceView> spaces;
  std::vector<FactView> oom_facts, settings, emulation;
  std::vector<std::string> losses;

  FieldValues fields() const {
    return {
        {"index", index, "0-based, within the table"},
        {"number", number, "1-based, within the table"},
        {"anchor", anchor, "An id for links, unique in the report"},
        {"id", id, "The case id"},
        {"strategy", strategy,
         "The stack as in the case id, and what ran it where there are several"},
        {"name", name, "The stack or the program alone"},
        {"build", build, "What ran it, \"PyTorch 2.15.0\"; empty where the run has one"},
        {"short", short_name, "The stack, cut to fit a drawing"},
        {"parts", parts, "The stack's strategies, one text each"},
        {"is_reference", is_reference, "The differences are against this row"},
        {"ok", ok, "It ran to its end"},
        {"failed", !ok, "It did not"},
        {"status", status,
         "ok, out_of_memory, timeout, crashed, unsupported, conflict, no_effect, host_failure, "
         "interrupted"},
        {"status_label", status_label, "The same in words"},
        {"reason", reason, "One sentence: why it failed"},
        {"oom_facts", oom_facts, "Out of memory: what was asked, what was there"},
        {"needed", needed,
         "Out of memory on an emulated card: the peak reserved when run without a limit"},
        {"needed_allocated", needed_allocated, "The same, allocated"},
        {"least", least,
         "The least memory of a card that it was seen to run in, to 2 MiB; where that was looked "
         "for"},
        {"peak", peak, "Peak allocated"},
        {"requested", requested, "Peak asked for"},
        {"reserved", reserved, "Peak reserved (CUDA)"},
        {"beside", beside, "A cell for each of the table's `beside`; empty where it did not run"},
        {"rss", rss, "Largest resident set of the worker process"},
        {"delta", delta, "Peak against the reference"},
        {"bar", bar, "The peak as a fraction of the table's largest"},
        {"is_lowest", is_lowest,
         "The least memory in the table, of those whose promise is not broken"},
        {"peak_phase", peak_phase, "The phase of the peak, in words"},
        {"peak_step", peak_step, "1-based step of the peak"},
        {"steps", steps, "How many steps were measured"},
        {"step_ms", step_ms, "Median step time in milliseconds"},
        {"step_min_ms", step_min_ms, "The fastest step"},
        {"step_p90_ms", step_p90_ms, "The 90th percentile"},
        {"step_count", step_count, "How many steps were timed"},
        {"time", time, TimeView::kSummary},
        {"slower", time && time->slower, "Slower than the reference, beyond noise"},
        {"faster", time && time->faster, "Faster than the reference, beyond noise"},
        {"rounds", rounds, "The rounds it was timed in"},
        {"samples_per_second", samples_per_second, "From the median"},
        {"tokens_per_second", tokens_per_second, "From the median; language models"},
        {"clock", clock, "Which clock timed it"},
        {"threads", threads, "Threads of the timed process"},
        {"throughput_reason", throughput_reason, "Why there is no throughput"},
        {"published_memory", published_memory, "Published peaks of this model and stack"},
        {"published_throughput", published_throughput,
         "Published throughput of this model and stack"},
        {"equivalence", equivalence, "Does it train the same?"},
        {"has_phases", !phases.empty(), "`phases` is not empty"},
        {"has_losses", !losses.empty(), "`losses` is not empty"},
        {"several_spaces", spaces.size() > 1, "It used more than one space"},
        {"has_facts", has_facts,
         "Some of training, settings, losses, duration, trace or failure facts are known"},
        {"segments", segments, "The peak by category"},
        {"phases", phases, "Peaks by phase"},
        {"spaces", spaces, "Peaks by space"},
        {"settings", settings, "What the worker ran with"},
        {"losses", losses, "One loss a measured step"},
        {"wall", wall, "Start of its first process to the end of its last"},
        {"trace", trace, "Its trace, relative to the run folder"},
        {"trace_note", trace_note, "Why its trace is not shown"},
        {"timeline", timeline,
         "The case's memory over all its events; in a box 1000 wide and high, the highest of the "
         "table's cases at the top"},
        {"alive", alive, "What was alive at the peak"},
        {"lines", lines, "The peak by lines of code, where call stacks were recorded: a program's"},
        {"waterfall", waterfall,
         "From the reference's peak to this one's, exactly; absent for the reference"},
        {"why", why,
         "Why the strategy lowered the peak, or did not, in a sentence or two; of the reference "
         "where its peak is"},
        {"data", data,
         "HTML: the packed trace for the interactive chart (reports/run/trace_data.h)"},
        {"emulation", emulation, "What the emulated card could not answer"},
        {"verdict", verdict,
         "How far the figures of an emulated card can be relied on; absent for other devices, and "
         "where there are no figures"}};
  }
};

RowView row_view(const records::CaseResult& result, const Group& group, Sources& sources);
// Adds the known times, and facts from its trace and the reference's.
void add_throughput(const records::CaseResult& result, const Group& group, RowView& row);
void add_anatomy(const records::CaseResult& result, const Group& group, const Anatomies& anatomies,
                 RowView& row);

}  // namespace peakbench::reports
