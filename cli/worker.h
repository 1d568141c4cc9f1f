// The worker that a command uses.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/program.h"
#include "manifest/worker.h"
#include "workers/choose.h"

namespace peakbench::cli {

// Which PyTorch's worker, where --torch was not typed.
inline constexpr const char* kTorchVariable = "PEAKBENCH_TORCH";

// --torch VERSION.
inline constexpr const char* kTorchOption = "--torch";
CLI::Option* add_torch(CLI::App& command, World& world);

// Whose worker was asked for, by --torch or the variable.
workers::Wish wish_of(const World& world);
// That one, or this installation's own where it is it. Throws ConfigError where none fits, with
// what to do.
manifest::Worker worker_for(World& world, const workers::Wish& wish);

// The worker beside the program belongs to the PyTorch that the program was built with.
bool has_own_worker(const World& world);
manifest::Worker own_worker(const World& world);
// It is there, and what was asked for; no other is looked for then.
bool takes_own_worker(const World& world);

// Every worker of a folder that is of use, with the PyTorch that it would load.
std::vector<workers::Candidate> candidates_of(const World& world,
                                              const std::vector<workers::WorkerFolder>& folders,
                                              const workers::TorchFound& environment);

// Why none of them fits what was asked for, or the environment.
std::string why_no_worker(const World& world, std::vector<workers::Candidate> all,
                          const workers::TorchFound& environment);

// By --torch, else the variable; else the one beside the program; else by the environment's
// PyTorch, which starts Python; for that one a worker is compiled where there is none
// (workers_build.h). Chosen once. Throws ConfigError where none fits, with what to do.
const manifest::Worker& worker_of(World& world);
// The same, for a run on `device`; one that is compiled has the plugins of the quick start alone.
void choose_worker_of_quickstart(World& world, const std::string& device);
// The same, and nothing is compiled.
const manifest::Worker& worker_at_hand(World& world);

// Whose plugins are looked at and not run: worker_at_hand(), and where no PyTorch is there for any
// of them and none was named, any_worker().
manifest::Worker worker_to_look_at(World& world);

// The releases that there are workers and PyTorchs for, oldest first. Throws ConfigError where
// there is one alone.
std::vector<std::string> releases_with_workers(const World& world);

// For what must be quick and may not fail, such as a shell's completion: whose plugins are looked
// at. No Python is started.
manifest::Worker any_worker(const World& world);

}  // namespace peakbench::cli
