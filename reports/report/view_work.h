// What a step of each case makes the device do, beside the reference's: counts, no times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/report/group.h"

namespace peakbench::reports {

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
