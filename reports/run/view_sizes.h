#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/run.h"
#include "reports/render/record.h"
#include "reports/run/figures.h"

namespace peakbench::reports {

// What fits: the grid that `peakbench fit` found, of stacks and cards.

struct FitCellView {
  PEAKBENCH_VIEW(
      text(card, "The card"),
      flag(fits, "Some value runs"),
      text(largest, "The largest value that runs; empty where none was looked for"),
      flag(at_least, "A larger value may run: the search ended otherwise"),
      text(takes, "GiB that it takes of the card; where it does not fit, that it would need"),
      flag(is_least, "`takes` is the least memory that it runs in, else reserved"),
      text(left, "GiB of the card beside it and a CUDA context; empty where it does not fit"),
      text(lacks, "GiB that the card lacks; empty where it fits"),
      text(state, "fits, does_not_fit, unknown, not_run"),
      text(state_label, "The same in words"),
      text(note, "Which allocation fails, what speaks against it, why it is not known"));
};

struct FitRowView {
  PEAKBENCH_VIEW(text(name, "The stack, and what else differs"),
                 list(FitCellView, cells, "One a card, in the order of `cards`"));
};

struct FitCardView {
  PEAKBENCH_VIEW(text(name, "As typed"),
                 text(gib, "Its memory"));
};

struct FitView {
  PEAKBENCH_VIEW(text(anchor, "An id for links"),
                 text(run_title, "Its run, where the report has several"),
                 texts(answers, "The answer in words, one a card"),
                 text(label, "What the largest of was searched; empty: whether it fits"),
                 list(FitCardView, cards, "The columns"),
                 list(FitRowView, rows, "One a stack, length and setting"));
};

FitView fit_view(const records::FitGrid& grid, std::size_t index, const std::string& run_title);

// How the peak grows with the batch size or the sequence length: a table where a run has several of
// them.

struct ScalingPeakView {
  PEAKBENCH_VIEW(text(size, "The batch size or sequence length"),
                 text(gib, "Peak allocated; empty where the case has none"),
                 text(bytes, "The exact count, with separators"),
                 text(status, "Why the value is missing: `out of memory`, `not run`, ..."));
};

struct ScalingRowView {
  PEAKBENCH_VIEW(text(strategy, "The stack"),
                 list(ScalingPeakView, peaks, "One a size, in the order of `sizes`"),
                 text(mib_per_unit, "MiB a sample or token between the two largest sizes that ran; "
                      "empty where it `bends`"),
                 text(bytes_per_unit, "The same in bytes"),
                 text(linear_from, "The size from which on every step to the next costs the same a "
                      "unit, within 5%; empty where it `bends`"),
                 flag(bends, "No three sizes are on a line, or they are in the optimizer step, "
                      "which no sample adds to"));
};

struct ScalingView {
  PEAKBENCH_VIEW(text(anchor, "An id for links"),
                 text(model, "Model and options"),
                 text(device, "As in the case id"),
                 flag(emulated, "Figures from an emulated card"),
                 list(SettingView, settings, "What else the heading says, without `axis`"),
                 text(run_title, "Its run, where the report has several"),
                 text(axis, "What grows: `batch size`, `sequence length`"),
                 texts(sizes, "Its values, ascending"),
                 text(size_count, "How many"),
                 text(unit, "What the cost is counted by: `sample`, or `token` of a language "
                      "model"),
                 list(ScalingRowView, rows, "One a stack, in the order of the plan"));
};

// For batch size and sequence length, a table for all cases that differ by it and the stack alone,
// where there are two values of it or more.
std::vector<ScalingView> scaling_view(const std::vector<records::Run>& runs);

}  // namespace peakbench::reports
