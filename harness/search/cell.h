// One cell of the answer: a stack on a card, searched along one axis by running it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/host/context_memory.h"
#include "planning/plan.h"
#include "records/case.h"
#include "search/boundary.h"
#include "search/sized_case.h"

namespace peakbench::search {

struct Cell {
  planning::PlannedCase planned;  // with any value; decided: it is not run
  std::string card;               // as it was asked for: "a100-40gb"
  Along along = Along::kNothing;
  std::string label;    // display name of a value: "batch size", a placeholder's name
  Limits limits;        // of the values
  std::string not_run;  // why it is not; empty: it is
  // The case with another value.
  std::function<planning::PlannedCase(std::int64_t)> with_value;
  std::int64_t card_bytes = 0;
  // Set aside of that in every run, by the rule of emulator::context_taken().
  emulator::ContextMemoryTaken context{0, emulator::ContextSource::asked};

  std::int64_t usable_bytes() const {
    return card_bytes - static_cast<std::int64_t>(context.bytes);
  }
};

enum class State {
  kNotRun,
  kFits,        // `value` runs
  kDoesNotFit,  // not even the smallest value does
  kUnknown,     // ended by something other than memory, or by a user
};

std::string to_string(State state);  // "fits", "does_not_fit", "not_run", "unknown"

// One run of the search.
struct Trial {
  std::int64_t value = 0;
  std::optional<std::int64_t> memory_bytes;  // of the card instead of its own, with the context
  records::Status status = records::Status::kOk;
  std::optional<std::int64_t> allocated_bytes, reserved_bytes;  // peaks
  std::int64_t wall_ns = 0;
};

struct CellAnswer {
  State state = State::kNotRun;
  std::string reason;                 // of kNotRun and kUnknown, a sentence
  std::int64_t first = 1;             // the smallest value that the case takes
  std::optional<std::int64_t> value;  // the largest that runs
  // The smallest value that runs, for programs that need less memory with a larger value.
  bool is_smallest = false;
  // There is no larger value, or the case cannot have one; `limit_reason`: why, if known.
  bool at_limit = false;
  std::string limit_reason;
  std::vector<std::string> against;  // what speaks against the boundary, sentences
  // The run of `value` under the card's own limit; of a cell that does not fit, of the smallest
  // value without a limit, where that ran.
  std::optional<records::CaseResult> found;
  // The run that did not fit, of the next value (of a smallest, of the one before) or of the first.
  std::optional<records::CaseResult> failed;
  std::optional<std::int64_t> failed_value;
  LeastMemory least;  // of `found`
  std::vector<Trial> trials;
};

// Runs one planned case, keeping nothing; nullopt: interrupted.
using RunCase = std::function<std::optional<records::CaseResult>(const planning::PlannedCase&)>;

struct CellOptions {
  int beside = 3;            // see largest_that_runs()
  bool least_memory = true;  // look for it
  // Of what does not fit it is not asked what it would need.
  bool only_what_fits = false;
};

// Called by the thread that searches, after each run.
using HearTrial = std::function<void(const Trial&)>;

CellAnswer search_cell(const Cell& cell, const CellOptions& options, const RunCase& run,
                       const HearTrial& heard);

}  // namespace peakbench::search
