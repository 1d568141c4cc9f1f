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
  PEAKBENCH_VIEW(text(name, "The strategy with its options"),
                 text(base, "Without them"),
                 text(options, "They alone, from the comma on"),
                 flag(first, "The first of the stack"));
};

struct BesideView {
  PEAKBENCH_VIEW(text(label, "The column's"),
                 text(gib, "Peak allocated there"),
                 text(bytes, "The exact count"));
};

struct PublishedView {
  PEAKBENCH_VIEW(text(original, "As published, with its unit"),
                 text(gib, "Memory: converted to GiB"),
                 text(value, "Throughput: as published"),
                 text(unit, "The unit as published"),
                 text(off_percent, "Ours against the published figure, signed per cent; empty "
                      "where they cannot be compared"),
                 text(source, "Who published it"),
                 text(url, "Where (http or https only)"),
                 text(note, "What to know about it"),
                 text(number, "The number of its source in `sources`"));
};

struct EquivalenceView {
  PEAKBENCH_VIEW(text(label, "Promise and verdict in words"),
                 text(verdict, "held, broken, not_checked"),
                 flag(held, "The promise held"),
                 flag(broken, "The promise is broken"),
                 flag(not_checked, "The promise is claimed: nothing was compared here"),
                 flag(different, "Trains another problem than the baseline; its promise is then compared with the parts that make it so, if it has others"),
                 text(max_abs_difference, "Largest difference seen, or `not a number`"),
                 text(tolerance, "Largest difference allowed: absolute, `+`, relative"),
                 text(reason, "Why not checked, or what broke"));
};

struct SegmentView {
  PEAKBENCH_VIEW(text(category, "The category's name in run.json"),
                 text(label, "The same in words"),
                 text(colour, "A class for the palette: a known category, or `other`"),
                 text(gib, "GiB, three decimals"),
                 text(bytes, "The exact count"),
                 text(percent, "Per cent of the case's peak"),
                 text(start, "Where it starts, as a fraction of the table's widest bar"),
                 text(width, "Its width, as a fraction of the table's widest bar"));
};

struct PhaseView {
  PEAKBENCH_VIEW(text(phase, "build, forward, backward, optimizer_step; of programs also data, "
                      "evaluation, generation, checkpoint"),
                 text(label, "The same in words"),
                 text(gib, "Peak allocated in the phase"),
                 text(bytes, "The exact count"),
                 text(width, "As a fraction of the case's largest phase"),
                 flag(is_peak, "The case's peak is here"));
};

struct SpaceView {
  PEAKBENCH_VIEW(text(space, "cuda:0, cpu, pinned"),
                 text(gib, "Peak allocated"),
                 text(bytes, "The exact count"));
};

struct RowView {
  std::string short_name;
  PEAKBENCH_VIEW(
      text(index, "0-based, within the table"),
      text(number, "1-based, within the table"),
      text(anchor, "An id for links, unique in the report"),
      text(id, "The case id"),
      text(strategy, "The stack as in the case id, and what ran it where there are several"),
      text(name, "The stack or the program alone"),
      text(build, "What ran it, \"PyTorch 2.15.0\"; empty where the run has one"),
      shown("short", short_name, "The stack, cut to fit a drawing"),
      list(StackPartView, parts, "The stack's strategies, one text each"),
      flag(is_reference, "The differences are against this row"),
      flag(ok, "It ran to its end"),
      shown("failed", !ok, "It did not"),
      text(status, "ok, out_of_memory, timeout, crashed, unsupported, conflict, no_effect, "
           "host_failure, interrupted"),
      text(status_label, "The same in words"),
      text(reason, "One sentence: why it failed"),
      list(FactView, oom_facts, "Out of memory: what was asked, what was there"),
      maybe(BytesView, needed, "Out of memory on an emulated card: the peak reserved when run "
            "without a limit"),
      maybe(BytesView, needed_allocated, "The same, allocated"),
      maybe(BytesView, least, "The least memory of a card that it was seen to run in, to 2 MiB; "
            "where that was looked for"),
      maybe(BytesView, peak, "Peak allocated"),
      maybe(BytesView, requested, "Peak asked for"),
      maybe(BytesView, reserved, "Peak reserved (CUDA)"),
      list(BesideView, beside, "A cell for each of the table's `beside`; empty where it did not "
           "run"),
      maybe(BytesView, rss, "Largest resident set of the worker process"),
      maybe(DeltaView, delta, "Peak against the reference"),
      text(bar, "The peak as a fraction of the table's largest"),
      flag(is_lowest, "The least memory in the table, of those whose promise is not broken"),
      text(peak_phase, "The phase of the peak, in words"),
      text(peak_step, "1-based step of the peak"),
      text(steps, "How many steps were measured"),
      text(step_ms, "Median step time in milliseconds"),
      text(step_min_ms, "The fastest step"),
      text(step_p90_ms, "The 90th percentile"),
      text(step_count, "How many steps were timed"),
      maybe(TimeView, time, TimeView::kSummary),
      shown("slower", time && time->slower, "Slower than the reference, beyond noise"),
      shown("faster", time && time->faster, "Faster than the reference, beyond noise"),
      list(RoundView, rounds, "The rounds it was timed in"),
      text(samples_per_second, "From the median"),
      text(tokens_per_second, "From the median; language models"),
      text(clock, "Which clock timed it"),
      text(threads, "Threads of the timed process"),
      text(throughput_reason, "Why there is no throughput"),
      list(PublishedView, published_memory, "Published peaks of this model and stack"),
      list(PublishedView, published_throughput, "Published throughput of this model and stack"),
      maybe(EquivalenceView, equivalence, "Does it train the same?"),
      shown("has_phases", !phases.empty(), "`phases` is not empty"),
      shown("has_losses", !losses.empty(), "`losses` is not empty"),
      shown("several_spaces", spaces.size() > 1, "It used more than one space"),
      flag(has_facts, "Some of training, settings, losses, duration, trace or failure facts are "
           "known"),
      list(SegmentView, segments, "The peak by category"),
      list(PhaseView, phases, "Peaks by phase"),
      list(SpaceView, spaces, "Peaks by space"),
      list(FactView, settings, "What the worker ran with"),
      texts(losses, "One loss a measured step"),
      text(wall, "Start of its first process to the end of its last"),
      text(trace, "Its trace, relative to the run folder"),
      text(trace_note, "Why its trace is not shown"),
      maybe(TimelineView, timeline, "The case's memory over all its events; in a box 1000 wide and "
            "high, the highest of the table's cases at the top"),
      maybe(AliveView, alive, "What was alive at the peak"),
      maybe(LinesView, lines, "The peak by lines of code, where call stacks were recorded: a "
            "program's"),
      maybe(WaterfallView, waterfall, "From the reference's peak to this one's, exactly; absent "
            "for the reference"),
      text(why, "Why the strategy lowered the peak, or did not, in a sentence or two; of the "
           "reference where its peak is"),
      text(data, "HTML: the packed trace for the interactive chart (reports/run/trace_data.h)"),
      list(FactView, emulation, "What the emulated card could not answer"),
      maybe(VerdictView, verdict, "How far the figures of an emulated card can be relied on; "
            "absent for other devices, and where there are no figures"));
};

RowView row_view(const records::CaseResult& result, const Group& group, Sources& sources);
// Adds the known times, and facts from its trace and the reference's.
void add_throughput(const records::CaseResult& result, const Group& group, RowView& row);
void add_anatomy(const records::CaseResult& result, const Group& group, const Anatomies& anatomies,
                 RowView& row);

}  // namespace peakbench::reports
