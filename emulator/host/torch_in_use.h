// Which PyTorch a program will import, found before it is started.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/installation.h"

namespace peakbench::emulator {

struct TorchInUse {
  std::string version;           // 2.11.0+cu130
  std::string cuda;              // 13.0; empty: a build without CUDA
  std::string hip;               // 6.4; empty: no build for ROCm
  std::filesystem::path folder;  // that holds version.py
};

// What a command's Python finds as `torch`, which is not imported. nullopt where the command does
// not start Python itself (a shell script, a launcher that is no Python script), or its Python has
// no torch.
std::optional<TorchInUse> torch_of_command(const std::vector<std::string>& command);

// From the text of torch/version.py; nullopt where it names no version.
std::optional<TorchInUse> torch_from_version_file(const std::string& text);

// Why this PyTorch cannot work on the emulated card, and what would; nullopt when it can.
std::optional<std::string> why_torch_cannot_work(const TorchInUse& torch,
                                                 const Installation& installation);

}  // namespace peakbench::emulator
