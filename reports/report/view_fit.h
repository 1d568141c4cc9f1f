// What fits: the grid that `peakbench fit` found, of stacks and cards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "result/fit_grid.h"

namespace peakbench::reports {

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

FitView fit_view(const result::FitGrid& grid, std::size_t index, const std::string& run_title);

}  // namespace peakbench::reports
