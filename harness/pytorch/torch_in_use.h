// Which PyTorch a program will import, found before it is started.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::pytorch {

struct TorchInUse {
  std::string version;           // 2.11.0+cu130
  std::string cuda;              // 13.0; empty: a build without CUDA
  std::string hip;               // 6.4; empty: no build for ROCm
  std::string git_version = {};  // the revision that it was built from; empty: not said
  std::filesystem::path folder;  // that holds version.py
};

// What a command's Python finds as `torch`, which is not imported. nullopt where the command does
// not start Python itself (a shell script, a launcher that is no Python script), or its Python has
// no torch, or does not answer within 20 s. `cancelled` is asked meanwhile.
std::optional<TorchInUse> torch_of_command(const std::vector<std::string>& command,
                                           const std::function<bool()>& cancelled);

// The folder of that package, and no look into it; empty where torch_of_command() finds nothing.
std::filesystem::path torch_folder_of_command(const std::vector<std::string>& command,
                                              const std::function<bool()>& cancelled);

// The same of a Python that starts a script in the folder `scripts`. Empty: it has none. Nullopt:
// the program does not answer as Python 3 does.
std::optional<std::filesystem::path> torch_folder_of_python(const std::filesystem::path& python,
                                                            const std::filesystem::path& scripts,
                                                            const std::function<bool()>& cancelled);

// What the PyTorch in a folder says of itself. Throws ConfigError: no version.py that can be read,
// or none that names a version.
TorchInUse torch_in(const std::filesystem::path& folder);

// From the text of torch/version.py; nullopt where it names no version.
std::optional<TorchInUse> torch_from_version_file(const std::string& text);

}  // namespace peakbench::pytorch
