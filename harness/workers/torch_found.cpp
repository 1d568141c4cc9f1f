#include "workers/torch_found.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "elf/elf_file.h"
#include "errors/errors.h"
#include "files/file.h"
#include "process/find_program.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPythonVariable = "PEAKBENCH_PYTHON";
// Set by the wheel's command (python/peakbench): its own.
constexpr const char* kEnvironmentVariable = "PEAKBENCH_ENVIRONMENT_PYTHON";

struct Python {
  fs::path program;    // empty: there is none
  std::string naming;  // the variable that named it, as it was set; empty: found on PATH
};

Python find_python() {
  for (const char* variable : {kPythonVariable, kEnvironmentVariable})
    if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') {
      const auto naming = fmt::format("{}={}", variable, named);
      const auto found = process::find_program(named);
      if (!found || !files::is_there(found->string()))
        throw ConfigError(naming + ": there is no such program; name your Python, or unset it");
      return {*found, naming};
    }
  for (const char* name : {"python3", "python"})
    if (const auto found = process::find_program(name)) return {*found, ""};
  return {};
}

std::string problem_of_libraries(const fs::path& folder, bool has_cuda) {
  std::vector<const char*> names{"libtorch_cpu.so", "libc10.so"};
  if (has_cuda) names.insert(names.end(), {"libtorch_cuda.so", "libc10_cuda.so"});
  for (const char* name : names) {
    const auto library = folder / "lib" / name;
    if (!files::is_there(library.string()))
      return fmt::format("lib/{} is missing; install PyTorch again", name);
    try {
      const auto needed = elf::ElfFile(library.string()).needed_libraries();
      const auto musl = std::ranges::find_if(
          needed, [](const std::string& one) { return one.starts_with("libc.musl"); });
      if (musl != needed.end())
        return fmt::format(
            "it is built for musl ({}), and Peakbench's programs need glibc: use a Python and a "
            "PyTorch that are built for glibc (manylinux)",
            *musl);
    } catch (const elf::ElfError& error) {
      return fmt::format("lib/{} cannot be loaded: {}; install PyTorch again for this machine",
                         name, error.what());
    }
  }
  return "";
}

}  // namespace

fs::path python_of_environment() { return find_python().program; }

TorchFound torch_found_in(const fs::path& folder) {
  TorchFound found;
  found.folder = folder;
  try {
    auto torch = pytorch::torch_in(folder);
    if (!torch.hip.empty())
      found.problem = fmt::format(
          "it is PyTorch {}, built for ROCm {}; workers are for builds for CUDA or the CPU: "
          "install "
          "one of these",
          torch.version, torch.hip);
    else if (torch.git_version.empty())
      found.problem = "its version.py names no git revision; install PyTorch again";
    else
      found.problem = problem_of_libraries(folder, !torch.cuda.empty());
    if (found.problem.empty()) found.torch = std::move(torch);
  } catch (const ConfigError& error) {
    found.problem = fmt::format("{}; install PyTorch again", error.what());
  }
  return found;
}

TorchFound torch_of_environment() {
  const auto python = find_python();
  if (python.program.empty()) return {};
  // As for a program beside Python, `torchrun` say: what lies in the working folder is not its
  // torch.
  const auto folder = pytorch::torch_folder_of_python(
      python.program, fs::absolute(python.program).parent_path(), [] { return false; });
  if (!folder && !python.naming.empty())
    throw ConfigError(python.naming + ": that is no Python 3 that starts; name yours, or unset it");
  auto found = folder.value_or(fs::path()).empty() ? TorchFound{} : torch_found_in(*folder);
  found.python = python.program.string();
  return found;
}

}  // namespace peakbench::workers
