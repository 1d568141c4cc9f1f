// The arguments of `peakbench run`, as typed, and the request they make.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_values.h"
#include "cli/slurm_arguments.h"
#include "planning/plan.h"

namespace peakbench::cli {

struct RunArguments {
  std::string suite;
  std::string program;               // FILE.py:MODEL
  std::vector<std::string> command;  // of `releases`: a program's
  std::string requirements;          // file of additional packages for each release of PyTorch
  TypedLists cases;
  std::optional<std::int64_t> steps, warmup, repetitions, timeout_s, threads;
  std::optional<std::uint64_t> seed;
  std::string memory_limit;
  std::optional<std::int64_t> jobs;
  std::int64_t second_guesses = 0;
  SlurmArguments slurm;
  std::string card, cudnn, tf32, deterministic, assume;
  std::vector<std::string> plugins, checked_promises;
  std::string out;
  bool resume = false, overwrite = false, dry_run = false, json = false, no_report = false,
       quiet = false, no_ablation = false;
  std::string templates;
};

void add_run_options(CLI::App& command, RunArguments& arguments);
// Those that say what a case is and how it is measured, and where plugins are.
void add_one_case_options(CLI::App& command, RunArguments& arguments);
// Those of a run of two builds, which are no options there.
void add_ab_options(CLI::App& command, RunArguments& arguments);
// Those of a run with several releases of PyTorch.
void add_releases_options(CLI::App& command, RunArguments& arguments);

// The suite's request, where there is one, with what was typed in its place. Throws ConfigError.
planning::Request make_request(const RunArguments& arguments);

}  // namespace peakbench::cli
