// A program or shared library, 64-bit little-endian ELF for x86-64, read without loading it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/regular_file.h"

namespace peakbench::elf {

// What is wrong with a file, without its path: not readable, damaged, for another processor.
struct ElfError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// It does not begin as ELF files do.
struct NoElf : ElfError {
  using ElfError::ElfError;
};

// Nothing outside the file is read, whatever its headers claim. Everything throws ElfError.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path);

  // A program that is linked at any address is both.
  bool is_shared_library() const { return header_.e_type == ET_DYN; }
  bool is_program() const { return is_shared_library() || header_.e_type == ET_EXEC; }

  // Whether the dynamic loader has a part in starting it.
  bool has_interpreter() const;
  // The shared libraries that it asks the loader for: libc.so.6.
  std::vector<std::string> needed_libraries() const;

  // False if the program was stripped of its section headers.
  bool has_sections() const { return header_.e_shoff != 0; }
  std::vector<std::string> section_names() const;
  // The bytes of the first section of that name, at most a mebibyte.
  std::optional<std::string> section(const std::string& name) const;

 private:
  struct Sections {
    std::vector<Elf64_Shdr> headers;
    std::string names;
    std::string name_of(const Elf64_Shdr& header) const;
  };

  void read_header();
  Sections sections() const;
  // `what` for the message, for example "the section headers".
  void read(std::uint64_t offset, void* target, std::uint64_t bytes, const std::string& what) const;
  std::string contents(const Elf64_Shdr& section, const std::string& what) const;
  std::string text_in(const Elf64_Shdr& strings, std::uint64_t offset) const;

  files::RegularFile file_;
  Elf64_Ehdr header_{};
};

}  // namespace peakbench::elf
