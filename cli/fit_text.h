// What `peakbench fit` found, for a terminal. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/columns.h"
#include "search/cell.h"
#include "search/propose.h"

namespace peakbench::cli {

struct FitFound {
  std::string title;  // "llama-3.1-8b"
  search::Along along = search::Along::kNothing;
  std::string axis;  // of a program: the placeholder's name
  std::vector<search::Cell> cells;
  std::vector<search::CellAnswer> answers;   // one a cell
  std::optional<search::Proposal> proposal;  // where no stacks were named
  bool smallest_card = false;                // the question was which that is
};

// The answer in a sentence, or one a card.
std::string fit_answer(const FitFound& found, int line_width = kUnbroken);
// The answer; a grid of stacks and cards; what each takes; what fails; what else is to be known.
std::string fit_text(const FitFound& found, int width, int line_width = kUnbroken);

// What a value of the axis is called: "batch size", or a program's placeholder; empty where nothing
// was searched along.
std::string axis_label(const FitFound& found);
// "lora+checkpointing", with the length and the allocator where cells differ in them.
std::string row_of_cell(const FitFound& found, const search::Cell& cell);

}  // namespace peakbench::cli
