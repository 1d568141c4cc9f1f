// One section of a 64-bit little-endian ELF shared library, read without loading it.
#pragma once

#include <string>

namespace peakbench::manifest {

// The bytes of the section. Nothing outside the file is read, whatever its headers claim. Throws
// PluginError with the path: not readable, not an ELF shared library for x86-64, damaged, no such
// section, one that is too large.
std::string read_elf_section(const std::string& path, const std::string& section);

}  // namespace peakbench::manifest
