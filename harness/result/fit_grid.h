// What `peakbench fit` found, as fit.json in the folder of its run keeps it and a report shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result/run.h"

namespace peakbench::result {

inline constexpr const char* kFitFile = "fit.json";

// One stack on one card.
struct FitCell {
  std::string id;         // of the case with `largest`
  std::string row, card;  // what the answer's grid calls them: "lora", "a100-40gb"
  std::string state;      // fits | does_not_fit | unknown | not_run
  std::string reason;     // of the last two, a sentence
  std::optional<std::int64_t> largest;
  std::int64_t card_memory_bytes = 0;
  // Of `largest`, or of the smallest value where none fits: the least memory that it runs in, else
  // what was reserved; and what the card has beside it and a CUDA context, less than 0 where it
  // lacks something.
  std::optional<std::int64_t> takes_bytes, left_bytes;
  bool is_least = false;             // `takes_bytes` is the least memory
  std::string fails;                 // why the next value does not run
  std::vector<std::string> against;  // what speaks against the boundary
};

struct FitGrid {
  std::string run_created;  // of the run that was made with it; empty: none was
  std::string answer;       // lines
  // "batch size", or a placeholder's name; empty where nothing was searched along: fits or not.
  std::string label;
  std::vector<FitCell> cells;
};

// Whether the run was made with it, and not put in its folder later.
bool is_of(const FitGrid& grid, const Run& run);

// What is in the folder; nullopt: no fit.json. Throws RunFileError: it cannot be read.
std::optional<FitGrid> read_fit_grid(const std::string& folder);

}  // namespace peakbench::result
