// What sentences say of a table: which case needs the least memory, which is the fastest, and which
// are no answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report/view_time.h"

namespace peakbench::reports {

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

// Neither is ever a case whose promise is broken; nullptr where there is none.
const result::CaseResult* lowest_of(const Group& group);
const result::CaseResult* fastest_of(const Group& group);

std::optional<BestView> lowest_view(const Group& group);
// Of those that train as the reference does; nullopt where that is the lowest or the reference.
std::optional<BestView> lowest_same_view(const Group& group);
std::optional<FastestView> fastest_view(const Group& group);
std::vector<LeftOutView> left_out_view(const Group& group);

}  // namespace peakbench::reports
