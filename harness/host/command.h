#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/process.h"

namespace peakbench::process {

// The search on PATH.

// The file that a command's first word starts: itself when it holds a slash, else the first of that
// name on PATH.
std::optional<std::filesystem::path> find_program(const std::string& word);

// A module of ours, started in the user's Python.

// The words of a command that runs the module as `python -m` does; its arguments follow. Nothing is
// imported from the working folder, which `python -m` puts before Python's own modules: a package
// `importlib` there would run. (Python's own option for that, -P, came with 3.11.)
std::vector<std::string> python_module(const std::string& python, const std::string& module);

// Becomes the program (execvp): its input, output and signals are the program's. Returns where it
// cannot be started, with the reason.
std::string become(std::vector<std::string> words);

// Asks a program of the system's: what it prints, bounded, within a time.

struct Command {
  std::vector<std::string> arguments;     // [0] is looked for on PATH
  std::chrono::milliseconds patience;     // then it is ended
  std::vector<std::string> without = {};  // variables whose names begin so are kept from it
  std::chrono::milliseconds grace{0};     // from SIGTERM to SIGKILL, for one that tidies up
  std::size_t most_output = 64ull << 20;  // bytes; one that prints more is ended
  std::function<bool()> cancelled = {};   // asked every few milliseconds; then it is ended
};

struct CommandSaid {
  std::string start_error;  // why it could not be started; nothing else holds then
  Stop stopped = Stop::kNone;
  int exit_code = 0;     // 128 + the signal that ended it
  std::string out, err;  // together at most what it may print
  bool ok() const { return start_error.empty() && stopped == Stop::kNone && exit_code == 0; }
};

// Blocks until the program has ended. Its input is empty; a Ctrl-C typed at the terminal does not
// reach it. If it is ended, so is its whole process group. Processes that it leaves running when it
// ends by itself are neither ended nor waited for, even if they hold its output open.
CommandSaid ask_command(const Command& command);

}  // namespace peakbench::process
