#include "worker/symbol_of.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

namespace peakbench::worker {
namespace {

struct Mapped {
  const std::byte* data = nullptr;
  std::size_t size = 0;

  // Null where that reaches beyond the file.
  template <typename Item>
  const Item* at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > size || count > (size - offset) / sizeof(Item)) return nullptr;
    return reinterpret_cast<const Item*>(data + offset);
  }
};

Mapped map(const char* path) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (file < 0 || ::fstat(file, &facts) != 0 || facts.st_size <= 0) return {};
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  return data == MAP_FAILED ? Mapped{} : Mapped{static_cast<const std::byte*>(data), size};
}

bool covers(const Elf64_Sym& symbol, std::uintptr_t offset) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= offset &&
         offset - symbol.st_value < symbol.st_size;
}

const char* name_in(const Mapped& file, const Elf64_Shdr& names, std::uint64_t at) {
  if (at >= names.sh_size) return nullptr;
  const char* name = file.at<char>(names.sh_offset + at, names.sh_size - at);
  // A table ends with a zero; one that does not is no table.
  return name != nullptr && name[names.sh_size - at - 1] == '\0' ? name : nullptr;
}

const char* in_table(const Mapped& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                     std::uintptr_t offset) {
  const auto count = table.sh_size / sizeof(Elf64_Sym);
  const auto* symbols = file.at<Elf64_Sym>(table.sh_offset, count);
  for (std::uint64_t i = 0; symbols != nullptr && i < count; ++i)
    if (covers(symbols[i], offset)) return name_in(file, names, symbols[i].st_name);
  return nullptr;
}

}  // namespace

const char* symbol_of(const char* path, std::uintptr_t offset) {
  const Mapped file = map(path);
  const auto* header = file.at<Elf64_Ehdr>(0, 1);
  if (header == nullptr || header->e_shentsize != sizeof(Elf64_Shdr)) return nullptr;
  const auto* sections = file.at<Elf64_Shdr>(header->e_shoff, header->e_shnum);
  for (unsigned i = 0; sections != nullptr && i < header->e_shnum; ++i)
    if (sections[i].sh_type == SHT_SYMTAB && sections[i].sh_link < header->e_shnum)
      return in_table(file, sections[i], sections[sections[i].sh_link], offset);
  return nullptr;
}

}  // namespace peakbench::worker
