// What runs the cases of a command: this installation's worker, or each that --torch and --build
// name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "planning/plan.h"

namespace peakbench::cli {

struct BuildOptions {
  std::vector<std::string> plugins = {};  // --plugins
  std::string requirements = {};          // --requirements
  bool installs = true;                   // not: a release that is not there has no packages
  // The devices that a worker can use.
  std::function<planning::DeviceHook(const planning::Worker&)> devices;
};

// The builds with their plugins, and their differences if there are several. Compiles a worker if
// the environment's PyTorch has none and no other was requested. Programs alone need no worker:
// they import the PyTorch of their Python, or one of --torch: the environment's, else one that is
// installed in the cache. Throws ConfigError: no such release or build, a worker or a plugin that
// cannot be used, two names for one, --torch with --build. Throws Interrupted.
std::vector<planning::Build> builds_for(World& world, const planning::Request& request,
                                        const BuildOptions& options);

// All that are emulated, and those of this machine; `auto` is the default card.
planning::DeviceHook any_card(const planning::Worker& worker);

}  // namespace peakbench::cli
