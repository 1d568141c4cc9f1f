// The subcommands. Each adds itself to the application with its help; what it does is returned to
// be called after parsing, and gives the exit code. Errors are exceptions (base/errors.h), caught
// in one place, program.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/program.h"
#include "planning/manifest.h"
#include "planning/worker.h"

namespace peakbench::cli {

using Command = std::function<int()>;

// A command of `parent` with examples and exit codes below its help.
inline CLI::App* subcommand(CLI::App& parent, const std::string& name, const std::string& words,
                            const char* footer) {
  auto* command = parent.add_subcommand(name, words);
  command->footer(footer);
  return command;
}

Command add_run(CLI::App& app, World& world);
// What a scheduler's task runs: one task of a submission that `run --executor slurm` made.
Command add_work(CLI::App& app, World& world);
Command add_fit(CLI::App& app, World& world);
Command add_advise(CLI::App& app, World& world);
Command add_list(CLI::App& app, World& world);
Command add_describe(CLI::App& app, World& world);
Command add_merge(CLI::App& app, World& world);
Command add_debug(CLI::App& app, World& world);
Command add_report(CLI::App& app, World& world);
Command add_quickstart(CLI::App& app, World& world);
Command add_new(CLI::App& app, World& world);
Command add_check(CLI::App& app, World& world);
Command add_mcp(CLI::App& app, World& world);
Command add_open(CLI::App& app, World& world);
Command add_workers(CLI::App& app, World& world);
Command add_doctor(CLI::App& app, World& world);
Command add_completion(CLI::App& app, World& world);
Command add_man(CLI::App& app, World& world);
Command add_emulate(CLI::App& app, World& world);
Command add_trace(CLI::App& app, World& world);
Command add_export(CLI::App& app, World& world);
Command add_import(CLI::App& app, World& world);
Command add_history(CLI::App& app, World& world);
Command add_publish(CLI::App& app, World& world);
Command add_compare(CLI::App& app, World& world);
Command add_gate(CLI::App& app, World& world);
Command add_releases(CLI::App& app, World& world);
Command add_ab(CLI::App& app, World& world);

// By name, in the order of the program's help.
using Commands = std::vector<std::pair<std::string, Command>>;
// Those of a program, which links one of all_commands.cpp and quickstart_commands.cpp.
Commands add_commands(CLI::App& app, World& world);

// Prints what may come next, a line each (completion.h).
int complete(const CLI::App& app, World& world, const std::vector<std::string>& words);

// Finds the worker's own plugins, those in folders typed on the command line, and those in folders
// named by the environment and a suite. Prints what is wrong with a plugin to `err`. Throws
// ConfigError if a folder is missing or contains no plugins.
planning::Found find_plugins(World& world, const planning::Worker& worker,
                             const std::vector<std::string>& typed,
                             const std::vector<planning::Folder>& of_suite = {});

}  // namespace peakbench::cli
