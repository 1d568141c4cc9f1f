#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/runner.h"
#include "planning/manifest.h"
#include "planning/plan.h"
#include "search/cell.h"

namespace peakbench::search {

// What fits: cells of a plan, each searched by running it, several at a time.

// Called on the thread that called, one after another.
class FitListener {
 public:
  virtual ~FitListener() = default;
  virtual void cell_started(std::size_t /*cell*/) {}
  virtual void trial_ended(std::size_t /*cell*/, const Trial&) {}
  virtual void cell_ended(std::size_t /*cell*/, const CellAnswer&) {}
  virtual void warning(const std::string&) {}
  virtual void tick() {}
};

struct FitOptions {
  CellOptions cell;
  std::size_t jobs = 1;
  // Of each lane, the cells after one that fits are not run: a smaller card does.
  bool until_one_fits = false;
};

// Runs trials in a folder of its own, and leaves nothing there.
class TrialRunner {
 public:
  // All must outlive this. `scratch` is there.
  TrialRunner(const planning::Request& request, launch::Runner& runner,
              std::filesystem::path scratch);
  // From any thread. nullopt: interrupted. `timeout_s`: in place of the request's.
  std::optional<records::CaseResult> run(
      const planning::PlannedCase& planned, const launch::Listener& listener,
      std::optional<std::int64_t> timeout_s = std::nullopt) const;

 private:
  const planning::Request& request_;
  launch::Runner& runner_;
  std::filesystem::path scratch_;
};

// A cell a case of the plan, which is of plugins, or of functions in Python in one place. Throws
// ConfigError where no cell can be searched along that axis, or a case is on no emulated card.
std::vector<Cell> cells_of(const planning::Plan& plan, Along along, const planning::Found& plugins);

// A cell a device of the program, whose command has `axis` for a placeholder. Empty `axis`: as it
// is.
std::vector<Cell> cells_of(const planning::Program& program, const std::string& axis, Limits limits,
                           const planning::Plan& plan);

// Cells of a lane one after another, in this order. An answer a cell; after a Ctrl-C the rest say
// so.
using Lanes = std::vector<std::vector<std::size_t>>;
std::vector<CellAnswer> search_cells(const std::vector<Cell>& cells, const Lanes& lanes,
                                     const FitOptions& options, const TrialRunner& trials,
                                     FitListener& listener);

// Why a case is no answer: it is seen without values that it does not train as it promises. Empty:
// it is not. `reference`: what it is compared with; may be null.
std::string why_broken(records::CaseResult& found, const records::CaseResult* reference);

// Takes back the answers of stacks that train other parameters than they promise, which is seen
// without values. `run_reference` runs what was found with another stack, where no cell has that;
// nullopt: it did not run.
using RunReference = std::function<std::optional<records::CaseResult>(
    const records::CaseResult& found, const std::string& stack)>;
void take_back_broken(const std::vector<Cell>& cells, std::vector<CellAnswer>& answers,
                      const RunReference& run_reference);

// Each cell by itself.
Lanes lane_each(std::size_t cells);
// A lane a stack and length, its cards from the smallest on.
Lanes lanes_by_card(const std::vector<Cell>& cells);

// The answer as JSON (docs/how-to/fit.md lists the fields).

// Memory of the cell's result, and the rest of the card without the context.
struct Room {
  std::optional<std::int64_t> takes_bytes;  // the least memory, else what was reserved
  std::optional<std::int64_t> left_bytes;   // less than 0: it lacks
};
Room room_of(const Cell& cell, const CellAnswer& answer);

nlohmann::ordered_json to_json(const Cell& cell, const CellAnswer& answer);

}  // namespace peakbench::search
