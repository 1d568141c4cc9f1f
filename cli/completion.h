// What may come next on a command line, for shells.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace peakbench::cli {

// Values to choose from. By option: "model", "strategy", "device", "card". By name of a model or
// strategy: its options ("lora" gives "rank", ...).
struct CompletionValues {
  std::function<std::vector<std::string>(const std::string& option)> of_option;
  std::function<std::vector<std::string>(const std::string& name)> options_of;
};

// `words`: what follows `peakbench` up to the cursor; the last word is incomplete and may be empty.
// Returns complete words, each beginning with the last one. Returns none if a file or an argument
// of a user's program is expected.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const CompletionValues& values);

// The command of `app` of this name. nullptr: it has none.
const CLI::App* command_named(const CLI::App& app, const std::string& word);

// The option of the command that a word names: "--json=took.json", "-q". nullptr: it has none.
const CLI::Option* option_named(const CLI::App& command, const std::string& word);
bool takes_value(const CLI::Option& option);

}  // namespace peakbench::cli
