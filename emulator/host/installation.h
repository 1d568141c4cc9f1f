#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/torch_in_use.h"

namespace peakbench::emulator {

// Where the stub libraries and the data of cards are, and which PyTorch they are for.

struct Installation {
  std::filesystem::path folder;  // libpeakbench_emulator.so, stub libraries, cards/, libtorch.json
  std::string libtorch_version;  // 2.11.0+cu130
  std::string libtorch_cuda;     // 13.0
  std::vector<int> architectures;                // that it has code for: 75, 80, ...
  std::vector<std::filesystem::path> libraries;  // in the order in which they are preloaded
  // What a PyTorch for CUDA 12 loads under other names.
  std::vector<std::filesystem::path> cuda12_libraries;
  std::vector<int> cuda_majors;  // whose programs find their libraries: 12, 13
  // Of a program's own PyTorch; 0: unknown.
  int cuda_version = 0;   // 12040
  int cudnn_version = 0;  // 90100
  int nccl_version = 0;   // 22105
};

// The folder of the variable PEAKBENCH_EMULATOR_DIR, else ../lib/peakbench/emulator relative to the
// running program, else the build's. Throws ConfigError with the folders that were searched.
Installation find_installation();
// Throws ConfigError naming what is missing.
Installation installation_in(const std::filesystem::path& folder);

// Names of the stub libraries that a program needs: those that its PyTorch loads, if they support
// it.

// The installation for a program with that PyTorch: libraries named for its CUDA, cards that it has
// code for, versions that its libraries report. Without a PyTorch: the libraries of every CUDA; the
// program's own loads decide.
Installation for_program(const Installation& installation,
                         const std::optional<pytorch::TorchInUse>& torch);

// Why this PyTorch cannot work on the emulated card, and what would; nullopt when it can.
std::optional<std::string> why_torch_cannot_work(const pytorch::TorchInUse& torch,
                                                 const Installation& installation);

}  // namespace peakbench::emulator
