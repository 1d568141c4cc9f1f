#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>

#include "cli/program.h"
#include "launch/install_release.h"
#include "launch/worker_choice.h"
#include "planning/worker.h"

namespace peakbench::cli {

// Ctrl-C, where a command has nothing to show for it: its exit code is kInterrupted.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A PyTorch for programs, installed once, with its progress on `err`. Throws ConfigError: why it
// cannot be had; Interrupted.
launch::Release release_installed(World& world, const launch::ReleaseOrder& order);

// `peakbench workers build`; an exit code. Empty `torch_folder`: the environment's.
int build_worker(World& world, const std::string& torch_folder);

// Which PyTorch's worker, where --torch was not typed.
inline constexpr const char* kTorchVariable = "PEAKBENCH_TORCH";
inline constexpr const char* kTorchOption = "--torch";
CLI::Option* add_torch(CLI::App& command, World& world);

// Whose worker was asked for, by --torch or the variable.
launch::Wish wish_of(const World& world);
// That one, or this installation's own where it is it. Throws ConfigError where none fits, with
// what to do.
planning::Worker worker_for(World& world, const launch::Wish& wish);

// The worker next to the program belongs to the PyTorch that the program was built with.
bool has_own_worker(const World& world);
planning::Worker own_worker(const World& world);
// It is there, and what was asked for; no other is looked for then.
bool takes_own_worker(const World& world);

// The worker next to the program, and every worker of a folder that is of use, with the PyTorch
// that each would load.
std::vector<launch::Candidate> candidates_of(const World& world,
                                             const std::vector<launch::WorkerFolder>& folders,
                                             const launch::TorchFound& environment);

// Chosen once, in this order:
//
// 1. `--torch`;
// 2. the variable PEAKBENCH_TORCH;
// 3. the worker next to the program;
// 4. the PyTorch of the environment, found by starting Python. Its worker is compiled if it is
//    missing (worker.h).
//
// Throws ConfigError with what to do if none fits.
const planning::Worker& worker_of(World& world);
// The same, for a run on `device`; one that is compiled has the plugins of the quick start alone.
void choose_worker_of_quickstart(World& world, const std::string& device);
// The same, and nothing is compiled.
const planning::Worker& worker_at_hand(World& world);

// Whose plugins are looked at and not run: worker_at_hand(), and where no PyTorch is there for any
// of them and none was named, any_worker().
planning::Worker worker_to_look_at(World& world);

// The releases that there are workers and PyTorchs for, oldest first. Throws ConfigError where
// there is one alone.
std::vector<std::string> releases_with_workers(const World& world);

// For what must be quick and may not fail, such as a shell's completion: whose plugins are looked
// at. No Python is started.
planning::Worker any_worker(const World& world);

}  // namespace peakbench::cli
