// `--program`: a model that is a function in Python, or one of an installed library.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/option_values.h"
#include "cli/program.h"
#include "planning/plan.h"

namespace peakbench::cli {

CLI::Option* add_python_program(CLI::App& command, std::string& program);

// The model of --program in the request, as a program a value of the axes that are options of the
// model (--dtype, --seq). Strategies and batch sizes are Python's. Throws ConfigError: what was
// typed is for models of plugins.
void take_python_program(const std::string& program, const TypedLists& typed,
                         planning::Request& request);

// Throws ConfigError.
[[noreturn]] void refuse_for_python(const std::string& option, const std::string& program);

// Fills in the cases of the request's programs that are functions in Python. Throws ConfigError.
void ask_python(const World& world, planning::Request& request);

}  // namespace peakbench::cli
