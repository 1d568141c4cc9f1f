// What may come next on a command line, for shells.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace peakbench::cli {

// What there is to choose from, by what an option is called: "model", "strategy", "device", "card";
// and by the name of a model or strategy its options ("lora" gives "rank", ...).
struct CompletionValues {
  std::function<std::vector<std::string>(const std::string& option)> of_option;
  std::function<std::vector<std::string>(const std::string& name)> options_of;
};

// `words` are what follows `peakbench` up to the cursor; the last one is not complete and may be
// empty. Whole words, each beginning with the last one. None where a file is expected, or an
// argument of somebody else's program.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const CompletionValues& values);

// The option of the command that a word names: "--json=took.json", "-q". nullptr: it has none.
const CLI::Option* option_named(const CLI::App& command, const std::string& word);
bool takes_value(const CLI::Option& option);

}  // namespace peakbench::cli
