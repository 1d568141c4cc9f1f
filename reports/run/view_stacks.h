#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/figures.h"
#include "reports/run/group.h"
#include "reports/run/view_step.h"

namespace peakbench::reports {

// What sentences say of a table: which case needs the least memory, which is the fastest, and which
// are no answer.

struct BestView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(gib, "Its peak allocated"),
                 text(bytes, "The exact count"),
                 text(reserved, "Its peak reserved in GiB; empty where the device has none"),
                 text(beside, "What it takes beside that, in words: `3.400 GiB pinned host "
                      "memory`"),
                 text(percent, "Against the reference, signed; empty for the reference itself"),
                 maybe(TimeView, time, TimeView::kSummary),
                 text(doubt, "lower bound, upper bound or unreliable, where its figure is that and its error is unknown; else empty"),
                 flag(is_reference, "It is the reference"),
                 flag(different, "It changes what is trained: not comparable with full training"),
                 flag(claimed, "That it trains as the baseline does was not checked here"));
};

struct FastestView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(step_ms, "Its median step"),
                 flag(is_reference, "It is the reference"),
                 text(percent, "Against the reference, signed"),
                 maybe(TimeView, time, TimeView::kSummary),
                 text(tied, "Others that are not distinguishable from it, each with its mark, "
                      "joined"),
                 flag(different, "It changes what is trained: not comparable with full training"),
                 flag(claimed, "That it trains as the baseline does was not checked here"),
                 text(beside, "What it takes beside the device's memory, in words"));
};

struct LeftOutView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 flag(first, "The first of them"));
};

// Never a case whose promise is broken; nullptr if there is no such case.
const records::CaseResult* lowest_of(const Group& group);

std::optional<BestView> lowest_view(const Group& group);
// Of those that train as the reference does; nullopt where that is the lowest or the reference.
std::optional<BestView> lowest_same_view(const Group& group);
std::optional<FastestView> fastest_view(const Group& group);
std::vector<LeftOutView> left_out_view(const Group& group);

// Of stacks: what each part saves alone, and what the stack loses without it. Peaks only; the cases
// are rows of the table or were added for this.

struct AblationPartView {
  PEAKBENCH_VIEW(text(part, "The strategy"),
                 text(others, "The stack without it"),
                 maybe(DeltaView, alone, "It alone against `bare`"),
                 text(alone_missing, "Why there is no `alone`"),
                 maybe(DeltaView, without, "`others` against the stack: what the stack loses"),
                 text(without_missing, "Why there is no `without`"));
};

struct AblationView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 text(number, "Its row's"),
                 text(bare, "The stack without all its parts"),
                 object(DeltaView, together, "The stack against `bare`"),
                 maybe(DeltaView, sum, "What the parts save alone, added up; absent unless all are "
                       "known"),
                 list(AblationPartView, parts, "Its strategies but the baseline"));
};

std::vector<AblationView> ablation_view(const Group& group);  // one a stack

// Memory against throughput: points, the Pareto front, ticks; everything placed 0 to 1, the
// template has the sizes.

struct ParetoPointView {
  std::string short_name;
  PEAKBENCH_VIEW(text(number, "The row's number"),
                 text(strategy, "The stack"),
                 shown("short", short_name, "The stack and its mark, cut to fit a drawing"),
                 text(mark, "What to know before choosing it: `claimed`, `trains differently`, "
                      "`not as promised`; else empty"),
                 text(beside, "What it takes beside the device's memory, in words"),
                 text(position, "0-based, among the points"),
                 text(x, "Throughput, 0 to 1"),
                 text(y, "Peak memory, 0 to 1"),
                 text(gib, "Peak memory"),
                 text(rate, "Throughput, in `unit`"),
                 flag(on_front, "No other case is both smaller and faster; never one whose promise "
                      "is broken"),
                 flag(is_reference, "The reference"));
};

struct CornerView {
  PEAKBENCH_VIEW(text(x, "0 to 1"),
                 text(y, "0 to 1"));
};

struct ParetoView {
  PEAKBENCH_VIEW(list(ParetoPointView, points, "One a case with both figures"),
                 list(CornerView, front, "Corners of the Pareto front, from left to right"),
                 list(TickView, x_ticks, "Throughput"),
                 list(TickView, y_ticks, "Peak memory in GiB"),
                 text(unit, "samples/s or tokens/s"),
                 text(extra_points, "How many points beyond twelve"),
                 flag(has_claimed, "Some point's promise is claimed, not checked"),
                 flag(has_broken, "Some point's promise is broken"));
};

std::optional<ParetoView> pareto_view(const Group& group);  // nullopt with fewer than two points

}  // namespace peakbench::reports
