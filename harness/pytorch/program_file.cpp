#include "pytorch/program_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "elf/elf_file.h"

namespace peakbench::pytorch {
namespace {

struct ProgramFacts {
  bool has_interpreter = false;  // the dynamic loader
  bool needs_cudart = false;
  bool has_device_code = false;
};

// Nullopt: it is no program, or not to be understood as one.
std::optional<ProgramFacts> read_program(const std::string& path) {
  try {
    const elf::ElfFile file(path);
    if (!file.is_program()) return std::nullopt;
    return ProgramFacts{
        .has_interpreter = file.has_interpreter(),
        .needs_cudart = std::ranges::any_of(
            file.needed_libraries(),
            [](const std::string& name) { return name.starts_with("libcudart."); }),
        .has_device_code = std::ranges::any_of(file.section_names(), [](const std::string& name) {
          return name == ".nv_fatbin" || name == ".nvFatBinSegment";
        })};
  } catch (const elf::ElfError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> why_not_preloaded(const std::filesystem::path& program) {
  const auto facts = read_program(program.string());
  if (!facts) return std::nullopt;
  if (!facts->has_interpreter) {
    return fmt::format(
        "{} is linked statically: the dynamic loader has no part in starting it, so no library can "
        "be put under it. Link it dynamically, with the shared CUDA runtime (nvcc -cudart shared)",
        program.string());
  }
  if (facts->has_device_code && !facts->needs_cudart) {
    return fmt::format(
        "{} has the CUDA runtime linked into it (nvcc's default): its calls never leave the "
        "program, so no library can be put under them. Link it with the shared runtime (nvcc "
        "-cudart shared; in CMake, CUDA_RUNTIME_LIBRARY Shared)",
        program.string());
  }
  return std::nullopt;
}

}  // namespace peakbench::pytorch
