#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "planning/programs.h"

namespace peakbench::cli {

// The command line with "--" before the program's first word: what follows belongs to the program.
//
// | typed                                  | becomes                                          |
// |----------------------------------------|--------------------------------------------------|
// | [OPTION] train.py ARG, [OPTION] -- ... | emulate [OPTION] -- ...                          |
// | emulate, trace, fit [OPTION] word ARG  | the same with -- before the word                 |
// | releases [OPTION] train.py ARG         | the same with -- before the script               |
// | emulate --json without a file          | --json=-: the next word is a file where an       |
// |                                        | option or -- follows it, or where it has a dot   |
// |                                        | or a slash and does not end in .py               |
//
// Any other line stays as it is.
std::vector<std::string> with_program_set_apart(const CLI::App& app,
                                                std::vector<std::string> words);

// The positional option `name`, for a program's words exactly as they were typed after "--".
CLI::Option* add_program(CLI::App& command, std::vector<std::string>& words,
                         const std::string& name, const std::string& text);

// A program that can be started: before a script that is no program itself (`train.py`), the Python
// of the environment ($PEAKBENCH_PYTHON, the one Peakbench was installed for, python3 on PATH).
// Throws ConfigError: no such script, or no Python.
std::vector<std::string> runnable(std::vector<std::string> program);

// The Python of the environment whose PyTorch runs programs. `what`: in front of the error, such as
// "--library: ". Throws ConfigError where there is none.
std::string interpreter_of_environment(const std::string& what = "");

// A program of the words that were typed, whose braces are its own, started where we are. `where`:
// for messages.
planning::Program program_of(const std::vector<std::string>& command, const std::string& where);

// "train.py": what Python runs.
bool is_script(const std::string& word);

// Reads the words of a command line. Throws ConfigError: an unknown command or option with the one
// that was probably meant, a word that is missing with the line that was expected. Throws
// CLI::Success for --help and --version.
void parse_words(CLI::App& app, const std::vector<std::string>& words);

}  // namespace peakbench::cli
