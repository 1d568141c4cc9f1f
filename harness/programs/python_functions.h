// Models and strategies that are functions in Python: which there are, as Python says.
#pragma once

#include <string>

#include "host/command.h"
#include "planning/programs.h"

namespace peakbench::programs {

struct PythonToAsk {
  std::string interpreter;  // empty: none
  // Our own program, which runs Python on an emulated card where its PyTorch does not load without
  // CUDA's libraries.
  std::string peakbench;
};

// Fills in the cases of a program with PythonFunctions: imports its file, and calls nothing of it.
// Throws ConfigError, in one sentence, for a file, function or option that is not there, and for a
// Python without PyTorch or without the package peakbench.
void ask_python(planning::Program& program, const PythonToAsk& whom);

// Why a module of our Python package gave no answer: one sentence, with the last line of its
// output. `asked`: the question.
std::string why_no_answer(const process::CommandSaid& said, const std::string& interpreter,
                          const std::string& asked);

}  // namespace peakbench::programs
