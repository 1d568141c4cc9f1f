// Programs of a suite: commands with {placeholders}, and axes whose values fill them. No shell
// reads a command: an argument stays one argument, whatever a value holds.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "records/case.h"
#include "records/job.h"

namespace peakbench::planning {

// A value as the suite has it, and as a placeholder gets it: 4 and "4", true and "true".
struct AxisValue {
  nlohmann::json value;
  std::string text;
};

// A model under a stack of strategies, all functions in Python, as Python says of them.
struct PythonCase {
  records::PluginUse model;  // without a path
  std::vector<records::PluginUse> stack;
  std::int64_t batch_size = records::kUnknownBatch;  // that: the model takes none
  std::optional<std::int64_t> ranks;                 // of a stack for several ranks
  std::optional<std::int64_t> global_batch_size;     // of all of them together
  records::Equivalence promise;
  std::vector<records::Selection> reference;  // the stack that it is compared with
};

// What is run by `python3 -m peakbench.bench` (python/peakbench/bench.py).
struct PythonFunctions {
  std::string text;                       // FILE.py:MODEL,key=value, or MODULE:MODEL
  std::vector<std::string> strategies;    // as typed; empty: all that there are
  std::vector<std::int64_t> batch_sizes;  // empty: the model's own
  std::vector<std::int64_t> ranks;        // of the stacks that are for several ranks
  // Filled by who asks Python (programs/python_functions.h).
  std::string interpreter, place;    // the place: FILE.py or MODULE
  std::vector<std::string> offered;  // names of strategies that peakbench.strategies has
  std::vector<PythonCase> cases;
};

struct Program {
  std::string name;                                // safe for ids; of one program of a suite
  std::vector<std::string> command;                // one word at least
  std::map<std::string, std::string> environment;  // of names, with placeholders in the values
  std::string folder;                              // absolute: where it is started
  std::string typed_folder;                        // as the suite has it; empty: the suite's own
  std::map<std::string, std::vector<AxisValue>> axes;  // they multiply
  std::vector<std::string> devices;                    // empty: the suite's
  std::int64_t timeout_s = 0;                          // 0: the suite's
  std::string where;                                   // FILE:LINE:COLUMN of its table
  std::optional<PythonFunctions> python;               // then it has no command and no axes
};

// `{batch}` in a text; `{{` and `}}` are braces. Throws ConfigError with the text: a single brace,
// or braces around a name that is no axis.
std::vector<std::string> placeholders_in(const std::string& text);
// With a value in the place of each; every placeholder has one.
std::string filled(const std::string& text, const std::map<std::string, std::string>& values);

// Letters, digits, `_` and `-`, a letter first.
bool is_axis_name(const std::string& name);
// Letters, digits and `._-`, a letter or digit first; at most 60 characters.
bool is_program_name(const std::string& name);

// What a case of it is called ("train,batch=4") and runs.
struct ProgramCase {
  records::Selection selection;
  records::ProgramCommand command;
};

// What runs that case of a program with PythonFunctions.
records::ProgramCommand command_of(const Program& program, const records::CaseSpec& spec,
                                   std::int64_t steps);

// Where its devices are in Request::where, without the text.
std::string devices_section(const Program& program);

// Every combination of the axes' values, the last axis's changing quickest.
std::vector<ProgramCase> cases_of(const Program& program);

// Throws ConfigError if one of these is missing:
//
// - its command's first word, as a file below its folder or as a program on PATH (not checked if
//   the program has its own PATH);
// - the script for a Python, a launcher or a shell.
void check_is_there(const Program& program, const ProgramCase& one);

}  // namespace peakbench::planning
