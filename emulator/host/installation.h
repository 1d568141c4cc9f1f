// Where the stand-in libraries and the cards' data are, and what LibTorch they were made for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace peakbench::emulator {

struct Installation {
  std::filesystem::path folder;    // libpeakbench_emulator.so, the stand-ins, cards/, libtorch.json
  std::string libtorch_version;    // 2.11.0+cu130
  std::string libtorch_cuda;       // 13.0
  std::vector<int> architectures;  // that it has code for: 75, 80, ...
  std::vector<std::filesystem::path> libraries;  // in the order in which they are preloaded
};

// The folder of the variable PEAKBENCH_EMULATOR_DIR, else ../lib/peakbench/emulator beside the
// running program, else the build's. Throws ConfigError saying where it looked.
Installation find_installation();
// Throws ConfigError naming what is missing.
Installation installation_in(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
