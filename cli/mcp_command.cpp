// `peakbench mcp`: a server through which a language model uses Peakbench
// (python/peakbench/_mcp.py).
#include <fmt/format.h>

#include <chrono>

#include "base/errors.h"
#include "cli/commands.h"
#include "cli/program_words.h"
#include "host/command.h"
#include "programs/python_functions.h"

namespace peakbench::cli {
namespace {

constexpr const char* kMcpFooter = R"(Examples:
  pip install "mcp>=2"
  peakbench mcp
Your client starts this command, and speaks the Model Context Protocol over its standard input and output.
Its tools run programs on emulated cards, read runs and compare them (docs/how-to/mcp.md). They change no file
but new run folders; a program that a tool runs may do what it likes.
Exit codes: 0 the client has left; 2 Python, or its package mcp, was not found.)";

// In place of this program, so that the client's pipes are the server's.
int become_server(World& world) {
  const auto python = interpreter_of_environment();
  auto words = process::python_module(python, "peakbench._mcp");
  words.push_back(world.places.program);
  auto check = words;
  check.emplace_back("--check");
  constexpr std::chrono::minutes kPatience{1};
  const auto said = process::ask_command({.arguments = check, .patience = kPatience});
  if (!said.ok()) {
    if (!said.err.starts_with("peakbench: "))
      throw ConfigError(programs::why_no_answer(said, python, "peakbench._mcp"));
    world.err << said.err;
    return kUnusableInput;
  }
  const auto why = process::become(words);
  throw ConfigError(fmt::format("{} could not be started: {}", python, why));
}

}  // namespace

Command add_mcp(CLI::App& app, World& world) {
  subcommand(app, "mcp", "Serve Peakbench to a language model (Model Context Protocol)",
             kMcpFooter);
  return [&world] { return become_server(world); };
}

}  // namespace peakbench::cli
