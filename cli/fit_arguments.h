// The arguments of `peakbench fit`, as typed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_values.h"
#include "planning/plan.h"
#include "search/sized_case.h"

namespace peakbench::cli {

struct FitArguments {
  TypedLists cases;
  std::vector<std::string> cards, budgets, plugins, command;
  std::string program;  // PLACE:MODEL
  std::string largest, vary, assume, cudnn, out, name;
  std::optional<std::int64_t> steps, timeout_s, jobs;
  std::int64_t check = 3, second_guesses = 0;
  bool overwrite = false, no_report = false, quiet = false, least = false;
  OutputFormat format;
};

// `--vary batch=1..64`.
struct Vary {
  std::string axis;
  search::Limits limits;
};

void add_fit_options(CLI::App& command, FitArguments& arguments);

// What they ask for. All throw ConfigError.
bool asks_for_smallest_card(const FitArguments& arguments);
// What is searched along; kNothing where the batch size was given and nothing else was asked for.
search::Along along_of(const FitArguments& arguments);
std::optional<Vary> vary_of(const FitArguments& arguments);
// Without strategies where none was typed.
planning::Request fit_request(const FitArguments& arguments, search::Along along);
// The program behind `--`.
planning::Program fit_program(const FitArguments& arguments, const std::optional<Vary>& vary);

}  // namespace peakbench::cli
