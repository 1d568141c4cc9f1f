#include "workers/torch_found.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "elf/elf_file.h"
#include "errors/errors.h"
#include "files/file.h"
#include "process/find_program.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPythonVariable = "PEAKBENCH_PYTHON";

fs::path find_python() {
  const char* named = std::getenv(kPythonVariable);
  if (named != nullptr && *named != '\0') {
    const auto found = process::find_program(named);
    if (!found || !files::is_there(found->string()))
      throw ConfigError(
          fmt::format("{}={}: there is no such program; name your Python, or unset it",
                      kPythonVariable, named));
    return *found;
  }
  for (const char* name : {"python3", "python"})
    if (const auto found = process::find_program(name)) return *found;
  return {};
}

std::string problem_of_libraries(const fs::path& folder) {
  for (const char* name : {"libtorch_cpu.so", "libc10.so"}) {
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
    else
      found.problem = problem_of_libraries(folder);
    if (found.problem.empty()) found.torch = std::move(torch);
  } catch (const ConfigError& error) {
    found.problem = fmt::format("{}; install PyTorch again", error.what());
  }
  return found;
}

TorchFound torch_of_environment() {
  const auto python = find_python();
  if (python.empty()) return {};
  // A program beside Python, as `torchrun` is: what lies in the working folder is not its torch.
  const auto beside = fs::absolute(python).parent_path() / "peakbench";
  const auto folder =
      pytorch::torch_folder_of_command({python.string(), beside.string()}, [] { return false; });
  auto found = folder.empty() ? TorchFound{} : torch_found_in(folder);
  found.python = python.string();
  return found;
}

}  // namespace peakbench::workers
