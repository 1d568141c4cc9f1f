#include "host/program_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "host/mapped_file.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

struct ProgramFacts {
  bool is_program = false;
  bool has_interpreter = false;  // the dynamic loader
  bool needs_cudart = false;
  bool has_device_code = false;
};

const char* text_in(const MappedFile& file, const Elf64_Shdr& strings, std::uint64_t offset) {
  if (offset >= strings.sh_size || !file.at<char>(strings.sh_offset, strings.sh_size)) return "";
  const char* text = file.at<char>(strings.sh_offset + offset);
  return std::memchr(text, 0, strings.sh_size - offset) ? text : "";
}

void read_dynamic(const MappedFile& file, const Elf64_Shdr& section, const Elf64_Shdr& strings,
                  ProgramFacts& facts) {
  const auto count = section.sh_size / sizeof(Elf64_Dyn);
  const auto* entry = file.at<Elf64_Dyn>(section.sh_offset, count);
  for (std::uint64_t i = 0; entry && i < count; ++i) {
    if (entry[i].d_tag != DT_NEEDED) continue;
    if (std::strncmp(text_in(file, strings, entry[i].d_un.d_val), "libcudart.", 10) == 0)
      facts.needs_cudart = true;
  }
}

ProgramFacts read_program(const MappedFile& file) {
  ProgramFacts facts;
  const auto* header = file.at<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64)
    return facts;
  facts.is_program = header->e_type == ET_EXEC || header->e_type == ET_DYN;
  const auto* segments = file.at<Elf64_Phdr>(header->e_phoff, header->e_phnum);
  for (int i = 0; segments && i < header->e_phnum; ++i)
    facts.has_interpreter |= segments[i].p_type == PT_INTERP;
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  if (!sections || header->e_shstrndx >= header->e_shnum) return facts;
  for (int i = 0; i < header->e_shnum; ++i) {
    const std::string name = text_in(file, sections[header->e_shstrndx], sections[i].sh_name);
    facts.has_device_code |= name == ".nv_fatbin" || name == ".nvFatBinSegment";
    if (sections[i].sh_type == SHT_DYNAMIC && sections[i].sh_link < header->e_shnum) {
      read_dynamic(file, sections[i], sections[sections[i].sh_link], facts);
    }
  }
  return facts;
}

}  // namespace

std::optional<fs::path> find_program(const std::string& word) {
  if (word.find('/') != std::string::npos)
    return access(word.c_str(), F_OK) == 0 ? std::optional<fs::path>(word) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code ignored;
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / word;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, ignored))
      return candidate;
  }
  return std::nullopt;
}

std::optional<std::string> why_not_emulated(const fs::path& program) {
  const MappedFile file(program);
  const ProgramFacts facts = read_program(file);
  if (!facts.is_program) return std::nullopt;
  if (!facts.has_interpreter) {
    return fmt::format(
        "{} is linked statically: the dynamic loader has no part in starting it, so no library can "
        "be put "
        "under it. Link it dynamically, with the shared CUDA runtime (nvcc -cudart shared)",
        program.string());
  }
  if (facts.has_device_code && !facts.needs_cudart) {
    return fmt::format(
        "{} has the CUDA runtime linked into it (nvcc's default): its calls never leave the "
        "program, so no "
        "library can be put under them. Link it with the shared runtime (nvcc -cudart shared; in "
        "CMake, "
        "CUDA_RUNTIME_LIBRARY Shared)",
        program.string());
  }
  return std::nullopt;
}

}  // namespace peakbench::emulator
