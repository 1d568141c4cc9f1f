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
  std::string percent, interval, half_width, rounds, more_rounds, no_interval;
  bool faster = false, slower = false, noise = false;

  static constexpr const char* kSummary =
      "Step time against the reference; absent where there is nothing to compare";
  FieldValues fields() const {
    return {
        {"percent", percent, "Signed per cent"},
        {"interval", interval, "Its interval, `+1.0 to +5.2`; empty with fewer than three rounds"},
        {"half_width", half_width, "Half of the interval's width, without a sign"},
        {"rounds", rounds, "The rounds it is from"},
        {"faster", faster, "Faster than the reference, beyond noise"},
        {"slower", slower, "Slower than the reference, beyond noise"},
        {"noise", noise, "Not distinguishable from noise"},
        {"more_rounds", more_rounds,
         "Then: rounds more that should settle it, where that is known"},
        {"no_interval", no_interval, "Why it has no interval, else empty"}};
  }
};

// Against the reference's; nullopt where there is nothing to compare.
std::optional<TimeView> time_view(const records::CaseResult& result, const Group& group);

struct RoundView {
  std::string number, place, step_ms, other_cores;
  bool busy = false;

  FieldValues fields() const {
    return {
        {"number", number, "1-based"},
        {"place", place, "When in the round it was its turn, 1-based"},
        {"step_ms", step_ms, "The round's median step"},
        {"other_cores", other_cores, "Cores that other processes kept busy; empty where not known"},
        {"busy", busy, "That is more than a tenth of the cores"}};
  }
};

struct BusyView {
  std::string most, cores, count, timings;

  FieldValues fields() const {
    return {{"most", most, "The most cores that they kept busy"},
            {"cores", cores, "Of so many"},
            {"count", count, "Timings disturbed: by more than a tenth of the cores"},
            {"timings", timings, "Timings whose load is known"}};
  }
};

// Is the case's time known with an interval against that of every timed case of the group?
bool has_intervals(const records::CaseResult& result, const Group& group);
// The other cases that could be as fast as the fastest, each with its mark; not those that broke
// their promise.
std::string tied_with(const records::CaseResult& fastest, const Group& group);

// What a step of each case makes the device do, compared with the reference: counts, no times.

struct WorkRowView {
  std::string number, strategy, flops, exact_flops, flops_percent, recomputed, moved_gib, operators,
      launches, to_host_gib, to_device_gib, least_ms, costs;
  bool is_reference = false;

  FieldValues fields() const {
    return {{"number", number, "The case's row"},
            {"strategy", strategy, "The stack"},
            {"is_reference", is_reference, "It is what the others are against"},
            {"flops", flops, "In the unit that fits: 18.03 GFLOP"},
            {"exact_flops", exact_flops, "With separators"},
            {"flops_percent", flops_percent, "Signed per cent of the reference's; empty of itself"},
            {"recomputed", recomputed, "FLOPs that are done once more for backward; empty: none"},
            {"moved_gib", moved_gib, "Read and written by operators, GiB"},
            {"operators", operators, "How many did work"},
            {"launches", launches, "Kernels launched; empty where it is not known"},
            {"to_host_gib", to_host_gib, "Copied to the host, GiB; empty where it is not known"},
            {"to_device_gib", to_device_gib, "Copied to the device; likewise"},
            {"least_ms", least_ms, "The lower bound of the step; empty where there is none"},
            {"costs", costs, "What it does that the reference does not, in words; empty: nothing"}};
  }
};

struct WorkView {
  std::string step, steps, rates, missing;
  bool has_device = false, has_bound = false, has_costs = false;
  std::vector<WorkRowView> rows;

  FieldValues fields() const {
    return {{"step", step, "Which step was counted, 1-based"},
            {"steps", steps, "Of how many"},
            {"has_device", has_device, "Launches and copies are known of some"},
            {"has_bound", has_bound, "Some has a lower bound"},
            {"has_costs", has_costs, "Some has `costs`"},
            {"rates", rates, "The published rates behind the bounds"},
            {"missing", missing, "Operators that multiply matrices and are not in the FLOPs"},
            {"rows", rows, "The cases whose step was counted"}};
  }
};

std::optional<WorkView> work_view(const Group& group);  // nullopt: none was

}  // namespace peakbench::reports
