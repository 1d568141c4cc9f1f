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
  std::string strategy, gib, bytes, reserved, beside, percent, doubt;
  bool is_reference = false, different = false, claimed = false;
  std::optional<TimeView> time;

  FieldValues fields() const {
    return {
        {"strategy", strategy, "The stack"},
        {"gib", gib, "Its peak allocated"},
        {"bytes", bytes, "The exact count"},
        {"reserved", reserved, "Its peak reserved in GiB; empty where the device has none"},
        {"beside", beside, "What it takes beside that, in words: `3.400 GiB pinned host memory`"},
        {"percent", percent, "Against the reference, signed; empty for the reference itself"},
        {"time", time, TimeView::kSummary},
        {"doubt", doubt,
         "lower bound, upper bound or unreliable, where its figure is that and nobody can say how "
         "far off it is; else empty"},
        {"is_reference", is_reference, "It is the reference"},
        {"different", different, "It changes what is trained: not comparable with full training"},
        {"claimed", claimed, "That it trains as the baseline does was not checked here"}};
  }
};

struct FastestView {
  std::string strategy, step_ms, percent, tied, beside;
  bool is_reference = false, different = false, claimed = false;
  std::optional<TimeView> time;

  FieldValues fields() const {
    return {
        {"strategy", strategy, "The stack"},
        {"step_ms", step_ms, "Its median step"},
        {"is_reference", is_reference, "It is the reference"},
        {"percent", percent, "Against the reference, signed"},
        {"time", time, TimeView::kSummary},
        {"tied", tied, "Others that are not distinguishable from it, each with its mark, joined"},
        {"different", different, "It changes what is trained: not comparable with full training"},
        {"claimed", claimed, "That it trains as the baseline does was not checked here"},
        {"beside", beside, "What it takes beside the device's memory, in words"}};
  }
};

struct LeftOutView {
  std::string strategy;
  bool first = false;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"}, {"first", first, "The first of them"}};
  }
};

// Neither is ever a case whose promise is broken; nullptr if there is no such case.
const records::CaseResult* lowest_of(const Group& group);
const records::CaseResult* fastest_of(const Group& group);

std::optional<BestView> lowest_view(const Group& group);
// Of those that train as the reference does; nullopt where that is the lowest or the reference.
std::optional<BestView> lowest_same_view(const Group& group);
std::optional<FastestView> fastest_view(const Group& group);
std::vector<LeftOutView> left_out_view(const Group& group);

// Of stacks: what each part saves alone, and what the stack loses without it. Peaks only; the cases
// are rows of the table or were added for this.

struct AblationPartView {
  std::string part, others, alone_missing, without_missing;
  std::optional<DeltaView> alone, without;

  FieldValues fields() const {
    return {{"part", part, "The strategy"},
            {"others", others, "The stack without it"},
            {"alone", alone, "It alone against `bare`"},
            {"alone_missing", alone_missing, "Why there is no `alone`"},
            {"without", without, "`others` against the stack: what the stack loses"},
            {"without_missing", without_missing, "Why there is no `without`"}};
  }
};

struct AblationView {
  std::string strategy, number, bare;
  DeltaView together;
  std::optional<DeltaView> sum;
  std::vector<AblationPartView> parts;

  FieldValues fields() const {
    return {{"strategy", strategy, "The stack"},
            {"number", number, "Its row's"},
            {"bare", bare, "The stack without all its parts"},
            {"together", together, "The stack against `bare`"},
            {"sum", sum, "What the parts save alone, added up; absent unless all are known"},
            {"parts", parts, "Its strategies but the baseline"}};
  }
};

std::vector<AblationView> ablation_view(const Group& group);  // one a stack

// Memory against throughput: points, the Pareto front, ticks; everything placed 0 to 1, the
// template has the sizes.

struct ParetoPointView {
  std::string number, strategy, short_name, mark, beside, position, x, y, gib, rate;
  bool on_front = false, is_reference = false;

  FieldValues fields() const {
    return {{"number", number, "The row's number"},
            {"strategy", strategy, "The stack"},
            {"short", short_name, "The stack and its mark, cut to fit a drawing"},
            {"mark", mark,
             "What to know before choosing it: `claimed`, `trains differently`, `not as "
             "promised`; else empty"},
            {"beside", beside, "What it takes beside the device's memory, in words"},
            {"position", position, "0-based, among the points"},
            {"x", x, "Throughput, 0 to 1"},
            {"y", y, "Peak memory, 0 to 1"},
            {"gib", gib, "Peak memory"},
            {"rate", rate, "Throughput, in `unit`"},
            {"on_front", on_front,
             "No other case is both smaller and faster; never one whose promise is broken"},
            {"is_reference", is_reference, "The reference"}};
  }
};

struct CornerView {
  std::string x, y;

  FieldValues fields() const { return {{"x", x, "0 to 1"}, {"y", y, "0 to 1"}}; }
};

struct ParetoView {
  std::vector<ParetoPointView> points;
  std::vector<CornerView> front;
  std::vector<TickView> x_ticks, y_ticks;
  std::string unit, extra_points;
  bool has_claimed = false, has_broken = false;

  FieldValues fields() const {
    return {{"points", points, "One a case with both figures"},
            {"front", front, "Corners of the Pareto front, from left to right"},
            {"x_ticks", x_ticks, "Throughput"},
            {"y_ticks", y_ticks, "Peak memory in GiB"},
            {"unit", unit, "samples/s or tokens/s"},
            {"extra_points", extra_points, "How many points beyond twelve"},
            {"has_claimed", has_claimed, "Some point's promise is claimed, not checked"},
            {"has_broken", has_broken, "Some point's promise is broken"}};
  }
};

std::optional<ParetoView> pareto_view(const Group& group);  // nullopt with fewer than two points

}  // namespace peakbench::reports
