// A worker compiled for somebody's PyTorch, from our sources, and kept in the user's cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "pytorch/torch_in_use.h"
#include "workers/logged.h"

namespace peakbench::workers {

inline constexpr const char* kSourceVariable = "PEAKBENCH_SOURCE_DIR";
inline constexpr std::uintmax_t kBuildDiskGiB = 1;  // at most, while it is built: 0.6 measured

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
// and takes what the first has made. Throws ConfigError: what is missing (build_tools.h), or the
// build's last lines and where all of them are (CACHE/torch-VERSION.log). What is compiled for the
// quick start lies in CACHE/quickstart-torch-VERSION, which no other command takes for a worker;
// the build of the whole goes on from there, and removes it.
BuildEnd build_worker(const BuildOrder& order, const BuildListener& listener);

}  // namespace peakbench::workers
