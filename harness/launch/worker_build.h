#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "host/torch_in_use.h"
#include "launch/logged_command.h"

namespace peakbench::launch {

// A worker compiled from our sources for a user's PyTorch, and kept in the user's cache.

inline constexpr const char* kSourceVariable = "PEAKBENCH_SOURCE_DIR";

struct BuildOrder {
  pytorch::TorchInUse torch;
  std::filesystem::path sources;  // with our CMakeLists.txt
  std::string python;             // CMake is also searched for next to it
  std::filesystem::path carried;  // the installation's workers: where one serves, none is built
  std::string peakbench;          // our version
  std::size_t jobs = 1;
  bool quickstart = false;  // with the plugins of that suite alone: half of the work
};

struct BuildEnd {
  std::filesystem::path folder;  // the worker's; empty: it was cancelled, and nothing is left
  bool was_there = false;        // the installation, another process or an earlier call has it
};

// Makes CACHE/torch-VERSION atomically. One build runs at a time: a second caller waits, and takes
// the first one's result. Throws ConfigError if something is missing: the sources, a C++ compiler,
// CMake 3.25, Ninja or make, CUDA's headers, disk. Otherwise with the build's last lines and the
// path of its log (CACHE/torch-VERSION.log).
//
// A build for the quick start is in CACHE/quickstart-torch-VERSION, which no other command uses as
// a worker. A complete build continues from it, and removes it.
BuildEnd build_worker(const BuildOrder& order, const BuildListener& listener);

}  // namespace peakbench::launch
