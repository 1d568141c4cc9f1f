// `peakbench workers build`.
#pragma once

#include <stdexcept>
#include <string>

#include "cli/program.h"
#include "workers/release.h"
#include "workers/torch_found.h"

namespace peakbench::cli {

// Ctrl-C, where a command has nothing to show for it: its exit code is kInterrupted.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// For a PyTorch that was found, with its progress on `err`: its folder. Throws ConfigError: what is
// missing, or why the build failed; Interrupted. `quickstart`: as in workers::BuildOrder.
std::string build_worker_for(World& world, const workers::TorchFound& found, bool quickstart);

// A PyTorch for programs, installed once, with its progress on `err`. Throws ConfigError: why it
// cannot be had; Interrupted.
workers::Release release_installed(World& world, const workers::ReleaseOrder& order);

struct WorkersBuild {
  std::string torch_folder;  // empty: the environment's
};

// An exit code.
int build_worker(World& world, const WorkersBuild& arguments);

}  // namespace peakbench::cli
