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
  std::string card, largest, takes, left, lacks, state, state_label, note;
  bool fits = false, is_least = false, at_least = false;

  FieldValues fields() const {
    return {
        {"card", card, "The card"},
        {"fits", fits, "Some value runs"},
        {"largest", largest, "The largest value that runs; empty where none was looked for"},
        {"at_least", at_least, "A larger value may run: the search ended otherwise"},
        {"takes", takes,
         "GiB that it takes of the card; where it does not fit, that it would need"},
        {"is_least", is_least, "`takes` is the least memory that it runs in, else reserved"},
        {"left", left, "GiB of the card beside it and a CUDA context; empty where it does not fit"},
        {"lacks", lacks, "GiB that the card lacks; empty where it fits"},
        {"state", state, "fits, does_not_fit, unknown, not_run"},
        {"state_label", state_label, "The same in words"},
        {"note", note, "Which allocation fails, what speaks against it, why it is not known"}};
  }
};

struct FitRowView {
  std::string name;
  std::vector<FitCellView> cells;

  FieldValues fields() const {
    return {{"name", name, "The stack, and what else differs"},
            {"cells", cells, "One a card, in the order of `cards`"}};
  }
};

struct FitCardView {
  std::string name, gib;

  FieldValues fields() const { return {{"name", name, "As typed"}, {"gib", gib, "Its memory"}}; }
};

struct FitView {
  std::string anchor, label, run_title;
  std::vector<std::string> answers;
  std::vector<FitCardView> cards;
  std::vector<FitRowView> rows;

  FieldValues fields() const {
    return {{"anchor", anchor, "An id for links"},
            {"run_title", run_title, "Its run, where the report has several"},
            {"answers", answers, "The answer in words, one a card"},
            {"label", label, "What the largest of was searched; empty: whether it fits"},
            {"cards", cards, "The columns"},
            {"rows", rows, "One a stack, length and setting"}};
  }
};

FitView fit_view(const records::FitGrid& grid, std::size_t index, const std::string& run_title);

// How the peak grows with the batch size or the sequence length: a table where a run has several of
// them.

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
std::vector<ScalingView> scaling_view(const std::vector<records::Run>& runs);

}  // namespace peakbench::reports
