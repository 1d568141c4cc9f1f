// Where the stand-in libraries and the cards' data are, and what PyTorch they are for.
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
  // What a PyTorch for CUDA 12 loads under other names.
  std::vector<std::filesystem::path> cuda12_libraries;
  std::vector<int> cuda_majors;  // whose programs find their libraries: 12, 13
  // Of a program's own PyTorch, where it is known (see for_program.h); 0: not known.
  int cuda_version = 0;   // 12040
  int cudnn_version = 0;  // 90100
  int nccl_version = 0;   // 22105
};

// The folder of the variable PEAKBENCH_EMULATOR_DIR, else ../lib/peakbench/emulator beside the
// running program, else the build's. Throws ConfigError saying where it looked.
Installation find_installation();
// Throws ConfigError naming what is missing.
Installation installation_in(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
