#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "host/torch_in_use.h"
#include "launch/logged_command.h"

namespace peakbench::launch {

// A worker compiled for somebody's PyTorch, from our sources, and kept in the user's cache.

inline constexpr const char* kSourceVariable = "PEAKBENCH_SOURCE_DIR";

struct BuildOrder {
  pytorch::TorchInUse torch;
  std::filesystem::path sources;  // with our CMakeLists.txt
  std::string python;             // CMake is looked for beside it too
  std::filesystem::path carried;  // the installation's workers: where one serves, none is built
  std::string peakbench;          // our version
  std::size_t jobs = 1;
  bool quickstart = false;  // with the plugins of that suite alone: half of the work
};

struct BuildEnd {
  std::filesystem::path folder;  // the worker's; empty: it was cancelled, and nothing is left
  bool was_there = false;        // the installation, another process or an earlier call has it
};

// CACHE/torch-VERSION is there whole or not at all. One build at a time: who comes second waits,
// and takes what the first has made. Throws ConfigError: what is missing (the sources, a C++
// compiler, CMake 3.25, Ninja or make, CUDA's headers, disk), or the build's last lines and where
// all of them are (CACHE/torch-VERSION.log). What is compiled for the
// quick start lies in CACHE/quickstart-torch-VERSION, which no other command takes for a worker;
// the build of the whole goes on from there, and removes it.
BuildEnd build_worker(const BuildOrder& order, const BuildListener& listener);

}  // namespace peakbench::launch
