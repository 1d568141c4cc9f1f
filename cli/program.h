// The program `peakbench`: arguments in, text and an exit code out. main() gives it the real world,
// tests another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/columns.h"
#include "cli/terminal.h"
#include "launch/runner.h"
#include "planning/plan.h"
#include "planning/worker.h"

namespace peakbench::cli {

// Documented in docs/reference/exit-codes.md; stable.
enum Exit {
  kDone = 0,
  kInternalError = 1,
  kUnusableInput = 2,
  kEveryCaseFailed = 3,
  kRegression = 4,  // gate, ab --gate
  kFailedCase = 5,  // gate
  kInterrupted = 130,
};

// Where the installation's parts are.
struct Places {
  std::string worker;     // peakbench-worker next to the program; may be missing in an installation
  std::string plugins;    // folder of the plugins that are that worker's
  std::string templates;  // folder
  std::string problem;    // why they are unknown; every command prints it
  std::string workers = {};  // folder of workers for other PyTorchs
  std::string source = {};   // folder of our sources, to build more of them from
  std::string program = {};  // the running one's own file
};
// Beside the running program, as /proc says where that is: ../lib/peakbench/plugins,
// ../share/peakbench/templates, ../workers.
Places own_places();

struct World {
  std::ostream& out;
  std::ostream& err;
  Screen screen;  // what `err` is shown on
  int out_width;  // columns for tables on `out`
  Places places;
  std::function<std::unique_ptr<launch::Runner>(const planning::Plan&)> make_runner;
  std::string torch = {};                       // --torch, as typed
  std::optional<planning::Worker> chosen = {};  // worker.h
  int line_width = kUnbroken;                   // columns for sentences on `out`
  std::vector<std::string> typed = {};          // the whole command line, for the record

  World with_streams(std::ostream& other_out, std::ostream& other_err) const {
    return {other_out, other_err, screen, out_width, places, make_runner, {}, chosen, line_width};
  }
};

// `arguments` without the program's name. Never throws: every error is a message on `err` and an
// exit code.
int run_program(const std::vector<std::string>& arguments, World& world);

}  // namespace peakbench::cli
