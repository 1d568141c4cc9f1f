#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/run/group.h"

namespace peakbench::reports {

// How fast a case is against others, with what is known of how surely; and whether the machine was
// left alone while it was timed.

struct TimeView {  // one of `faster`, `slower`, `noise` and `no_interval` holds
  static constexpr const char* kSummary =
      "Step time against the reference; absent where there is nothing to compare";
  PEAKBENCH_VIEW(text(percent, "Signed per cent"),
                 text(interval, "Its interval, `+1.0 to +5.2`; empty with fewer than three rounds"),
                 text(half_width, "Half of the interval's width, without a sign"),
                 text(rounds, "The rounds it is from"),
                 flag(faster, "Faster than the reference, beyond noise"),
                 flag(slower, "Slower than the reference, beyond noise"),
                 flag(noise, "Not distinguishable from noise"),
                 text(more_rounds, "Then: rounds more that should settle it, where that is known"),
                 text(no_interval, "Why it has no interval, else empty"));
};

// Against the reference's; nullopt where there is nothing to compare.
std::optional<TimeView> time_view(const records::CaseResult& result, const Group& group);

struct RoundView {
  PEAKBENCH_VIEW(text(number, "1-based"),
                 text(place, "When in the round it was its turn, 1-based"),
                 text(step_ms, "The round's median step"),
                 text(other_cores, "Cores that other processes kept busy; empty where not known"),
                 flag(busy, "That is more than a tenth of the cores"));
};

struct BusyView {
  PEAKBENCH_VIEW(text(most, "The most cores that they kept busy"),
                 text(cores, "Of so many"),
                 text(count, "Timings disturbed: by more than a tenth of the cores"),
                 text(timings, "Timings whose load is known"));
};

// Is the case's time known with an interval against that of every timed case of the group?
bool has_intervals(const records::CaseResult& result, const Group& group);
// The other cases that could be as fast as the fastest, each with its mark; not those that broke
// their promise.
std::string tied_with(const records::CaseResult& fastest, const Group& group);

// What a step of each case makes the device do, compared with the reference: counts, no times.

struct WorkRowView {
  PEAKBENCH_VIEW(text(number, "The case's row"),
                 text(strategy, "The stack"),
                 flag(is_reference, "It is what the others are against"),
                 text(flops, "In the unit that fits: 18.03 GFLOP"),
                 text(exact_flops, "With separators"),
                 text(flops_percent, "Signed per cent of the reference's; empty of itself"),
                 text(recomputed, "FLOPs that are done once more for backward; empty: none"),
                 text(moved_gib, "Read and written by operators, GiB"),
                 text(operators, "How many did work"),
                 text(launches, "Kernels launched; empty where it is not known"),
                 text(to_host_gib, "Copied to the host, GiB; empty where it is not known"),
                 text(to_device_gib, "Copied to the device; likewise"),
                 text(least_ms, "The lower bound of the step; empty if unknown"),
                 text(costs, "What it does that the reference does not, in words; empty: nothing"));
};

struct WorkView {
  PEAKBENCH_VIEW(text(step, "Which step was counted, 1-based"),
                 text(steps, "Of how many"),
                 flag(has_device, "Launches and copies are known of some"),
                 flag(has_bound, "Some has a lower bound"),
                 flag(has_costs, "Some has `costs`"),
                 text(rates, "The published rates behind the bounds"),
                 text(missing, "Operators that multiply matrices and are not in the FLOPs"),
                 list(WorkRowView, rows, "The cases whose step was counted"));
};

std::optional<WorkView> work_view(const Group& group);  // nullopt: none was

}  // namespace peakbench::reports
