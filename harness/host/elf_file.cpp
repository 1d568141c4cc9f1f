#include "host/elf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>

namespace peakbench::elf {
namespace {

constexpr std::uint64_t kLargestSection = 1 << 20;  // a manifest has kilobytes
constexpr std::uint64_t kMostSections = 1 << 16;    // compilers make some per function
constexpr std::uint64_t kLongestName = 4096;        // of a library

}  // namespace

ElfFile::ElfFile(const std::string& path) : file_(path) {
  if (file_.error() != 0) throw ElfError(std::strerror(file_.error()));
  if (!file_.is_open()) throw ElfError("not a regular file");
  read_header();
}

bool ElfFile::has_interpreter() const {
  std::vector<Elf64_Phdr> segments(header_.e_phnum);
  if (header_.e_phentsize != sizeof(Elf64_Phdr) && !segments.empty())
    throw ElfError("damaged: program headers of another size");
  read(header_.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr),
       "the program headers");
  return std::ranges::any_of(segments, [](const auto& one) { return one.p_type == PT_INTERP; });
}

std::vector<std::string> ElfFile::needed_libraries() const {
  std::vector<std::string> names;
  const auto all = sections().headers;
  for (const auto& section : all) {
    if (section.sh_type != SHT_DYNAMIC || section.sh_link >= all.size()) continue;
    const std::string bytes = contents(section, "the dynamic section");
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= bytes.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, bytes.data() + at, sizeof entry);
      if (entry.d_tag == DT_NEEDED)
        names.push_back(text_in(all[section.sh_link], entry.d_un.d_val));
    }
  }
  return names;
}

std::vector<std::string> ElfFile::section_names() const {
  const Sections all = sections();
  std::vector<std::string> names;
  for (const auto& header : all.headers) names.push_back(all.name_of(header));
  return names;
}

std::optional<std::string> ElfFile::section(const std::string& name) const {
  const Sections all = sections();
  for (const auto& header : all.headers)
    if (all.name_of(header) == name) return contents(header, name);
  return std::nullopt;
}

// Ends at the latest with the names' own zero.
std::string ElfFile::Sections::name_of(const Elf64_Shdr& header) const {
  return header.sh_name < names.size() ? names.c_str() + header.sh_name : "";
}

void ElfFile::read(std::uint64_t offset, void* target, std::uint64_t bytes,
                   const std::string& what) const {
  const auto size = file_.size();
  if (offset > size || bytes > size - offset) {
    throw ElfError(
        fmt::format("damaged: {} would end after the file's end ({} bytes); build or copy it again",
                    what, size));
  }
  std::size_t got = 0;
  try {
    got = file_.read_at(offset, static_cast<char*>(target), bytes);
  } catch (const std::system_error& error) {
    throw ElfError(std::strerror(error.code().value()));
  }
  if (got < bytes) throw ElfError("became shorter while it was read");
}

void ElfFile::read_header() {
  if (file_.size() < SELFMAG) throw NoElf("no ELF header");
  read(0, header_.e_ident, SELFMAG, "the ELF header");
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) throw NoElf("no ELF header");
  read(0, &header_, sizeof header_, "the ELF header");
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_machine != EM_X86_64)
    throw ElfError("built for another processor; this Peakbench needs x86-64");
}

// Counts that do not fit the header stand in section 0 (ELF's extended numbering).
ElfFile::Sections ElfFile::sections() const {
  if (!has_sections()) return {};
  if (header_.e_shentsize != sizeof(Elf64_Shdr))
    throw ElfError("damaged: section headers of another size");
  Elf64_Shdr first{};
  read(header_.e_shoff, &first, sizeof first, "the section headers");
  const std::uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : first.sh_size;
  const std::uint64_t names = header_.e_shstrndx != SHN_XINDEX ? header_.e_shstrndx : first.sh_link;
  if (count == 0 || count > kMostSections)
    throw ElfError(fmt::format("damaged: {} sections", count));
  if (names >= count) throw ElfError("damaged: no section of names");
  Sections all{std::vector<Elf64_Shdr>(count), ""};
  read(header_.e_shoff, all.headers.data(), count * sizeof(Elf64_Shdr), "the section headers");
  all.names = contents(all.headers[names], "the section names");
  return all;
}

std::string ElfFile::contents(const Elf64_Shdr& section, const std::string& what) const {
  if (section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_COMPRESSED) != 0)
    throw ElfError(fmt::format("damaged: {} has no plain bytes", what));
  if (section.sh_size > kLargestSection)
    throw ElfError(fmt::format("damaged: {} claims {} bytes", what, section.sh_size));
  std::string bytes(section.sh_size, '\0');
  read(section.sh_offset, bytes.data(), section.sh_size, what);
  return bytes;
}

// A table of strings may be larger than what is read whole of a section.
std::string ElfFile::text_in(const Elf64_Shdr& strings, std::uint64_t offset) const {
  if (offset >= strings.sh_size || strings.sh_offset > ~std::uint64_t{0} - offset)
    throw ElfError("damaged: a library's name is outside of its string table");
  std::string text(std::min(strings.sh_size - offset, kLongestName), '\0');
  const auto from = strings.sh_offset + offset;
  if (from < file_.size()) text.resize(std::min<std::uint64_t>(text.size(), file_.size() - from));
  read(from, text.data(), text.size(), "the names of libraries");
  return text.c_str();
}

}  // namespace peakbench::elf
