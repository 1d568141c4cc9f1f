// How the peak grows with the batch size or the sequence length: a table where a run has several of
// them.
#pragma once

#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/report/settings.h"
#include "result/run.h"

namespace peakbench::reports {

struct ScalingPeakView {
  std::string size, gib, bytes, status;

  FieldValues fields() const {
    return {{"size", size, "The batch size or sequence length"},
            {"gib", gib, "Peak allocated; empty where the case has none"},
            {"bytes", bytes, "The exact count, with separators"},
            {"status", status, "Why there is none: `out of memory`, `not run`, ..."}};
  }
};

struct ScalingRowView {
  std::string strategy, mib_per_unit, bytes_per_unit, linear_from;
  std::vector<ScalingPeakView> peaks;
  bool bends = false;

  FieldValues fields() const {
    return {
        {"strategy", strategy, "The stack"},
        {"peaks", peaks, "One a size, in the order of `sizes`"},
        {"mib_per_unit", mib_per_unit,
         "MiB a sample or token between the two largest sizes that ran; empty where it `bends`"},
        {"bytes_per_unit", bytes_per_unit, "The same in bytes"},
        {"linear_from", linear_from,
         "The size from which on every step to the next costs the same a unit, within 5%; "
         "empty where it `bends`"},
        {"bends", bends,
         "No three sizes are on a line, or they are in the optimizer step, which no sample "
         "adds to"}};
  }
};

struct ScalingView {
  std::string anchor, model, device, axis, unit, run_title, size_count;
  std::vector<SettingView> settings;
  std::vector<std::string> sizes;
  std::vector<ScalingRowView> rows;
  bool emulated = false;

  FieldValues fields() const {
    return {{"anchor", anchor, "An id for links"},
            {"model", model, "Model and options"},
            {"device", device, "As in the case id"},
            {"emulated", emulated, "Figures from an emulated card"},
            {"settings", settings, "What else the heading says, without `axis`"},
            {"run_title", run_title, "Its run, where the report has several"},
            {"axis", axis, "What grows: `batch size`, `sequence length`"},
            {"sizes", sizes, "Its values, ascending"},
            {"size_count", size_count, "How many"},
            {"unit", unit, "What the cost is counted by: `sample`, or `token` of a language model"},
            {"rows", rows, "One a stack, in the order of the plan"}};
  }
};

// For batch size and sequence length, a table for all cases that differ by it and the stack alone,
// where there are two values of it or more.
std::vector<ScalingView> scaling_view(const std::vector<result::Run>& runs);

}  // namespace peakbench::reports
