// Shared libraries as a plugin build makes them, but with nothing in them except a manifest: for
// readers of manifests.
#pragma once

#include <elf.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "planning/manifest.h"

namespace peakbench::testing {

// The bytes of a 64-bit shared library with one section of that name and content (and the section
// of names).
inline std::string elf_bytes(const std::string& section, const std::string& content) {
  const std::string names = std::string(1, '\0') + ".shstrtab" + '\0' + section + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header + names.size() + content.size();
  Elf64_Shdr sections[3]{};
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 11;
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = sizeof header + names.size();
  sections[2].sh_size = content.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + names + content +
         std::string(reinterpret_cast<const char*>(sections), sizeof sections);
}

inline nlohmann::json stamp_json(const planning::Stamp& stamp = planning::own_stamp()) {
  return {{"sdk_revision", stamp.sdk_revision},
          {"libtorch_version", stamp.libtorch_version},
          {"libtorch_git_version", stamp.libtorch_git_version},
          {"libtorch_cuda", stamp.libtorch_cuda},
          {"cxx_abi", stamp.cxx_abi}};
}

inline std::string plugin_bytes(const nlohmann::json& manifest,
                                const planning::Stamp& stamp = planning::own_stamp()) {
  const nlohmann::json content{{"stamp", stamp_json(stamp)}, {"manifest", manifest}};
  return elf_bytes(planning::kSection, content.dump());
}

}  // namespace peakbench::testing
