#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::pytorch {

// Which PyTorch a program will import, found before it is started.

struct TorchInUse {
  std::string version;           // 2.11.0+cu130
  std::string cuda;              // 13.0; empty: a build without CUDA
  std::string hip;               // 6.4; empty: no build for ROCm
  std::string git_version = {};  // the revision that it was built from; empty: unknown
  std::filesystem::path folder;  // that holds version.py
};

// The `torch` that a command's Python would import. It is not imported. `cancelled` is asked
// meanwhile. Nullopt if the command does not start Python itself (a shell script, a launcher that
// is no Python script). Also nullopt if its Python has no torch or does not reply within 20 s.
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

// What an installed PyTorch says of itself besides its version, read from its files.

// The compute capabilities that it has code for, 90 for sm_90: what torch.cuda.get_arch_list()
// says. Empty where that is not found.
std::vector<int> architectures_of(const std::filesystem::path& torch);

// 12040 of "12.4"; 0 of no version.
int cuda_number(const std::string& version);

// What a program's file says of how it uses CUDA, before it is started.

// Why no library can be preloaded into the program, in a sentence. Nullopt if it can, or if the
// file is no ELF program (another program runs a script).
std::optional<std::string> why_not_preloaded(const std::filesystem::path& program);

}  // namespace peakbench::pytorch
