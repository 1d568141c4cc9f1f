#include "manifest/elf_section.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <vector>

#include "errors/errors.h"
#include "files/regular_file.h"

namespace peakbench::manifest {
namespace {

constexpr std::uint64_t kLargestSection = 1 << 20;  // a manifest has kilobytes
constexpr std::uint64_t kMostSections = 1 << 16;    // compilers make some per function

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : path_(path), file_(path) {
    if (file_.error() != 0) fail(std::strerror(file_.error()));
    if (!file_.is_open()) fail("not a regular file");
    read_header();
    read_section_headers();
  }

  std::optional<std::string> section(const std::string& wanted) const {
    const std::string names = contents(sections_[names_index_], "the section names");
    for (const auto& section : sections_) {
      if (section.sh_name >= names.size()) continue;
      // Ends at the latest with the string's own zero.
      if (names.c_str() + section.sh_name == wanted) return contents(section, wanted);
    }
    return std::nullopt;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw PluginError(fmt::format("{}: {}", path_, problem));
  }

 private:
  // `what` for the message, for example "the section headers".
  void read(std::uint64_t offset, void* target, std::uint64_t bytes,
            const std::string& what) const {
    const auto size = file_.size();
    if (offset > size || bytes > size - offset) {
      fail(fmt::format(
          "damaged: {} would end after the file's end ({} bytes); build or copy it again", what,
          size));
    }
    std::size_t got = 0;
    try {
      got = file_.read_at(offset, static_cast<char*>(target), bytes);
    } catch (const std::system_error& error) {
      fail(std::strerror(error.code().value()));
    }
    if (got < bytes) fail("became shorter while it was read");
  }

  void read_header() {
    if (file_.size() < SELFMAG) fail("not a shared library (no ELF header)");
    read(0, header_.e_ident, SELFMAG, "the ELF header");
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
      fail("not a shared library (no ELF header)");
    }
    read(0, &header_, sizeof header_, "the ELF header");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_machine != EM_X86_64) {
      fail("built for another processor; this Peakbench needs x86-64");
    }
    if (header_.e_type != ET_DYN) fail("an ELF file, but not a shared library");
    if (header_.e_shoff == 0) fail("has no section headers; was it stripped of them?");
    if (header_.e_shentsize != sizeof(Elf64_Shdr)) fail("damaged: section headers of another size");
  }

  // Counts that do not fit the header stand in section 0 (ELF's extended numbering).
  void read_section_headers() {
    Elf64_Shdr first{};
    read(header_.e_shoff, &first, sizeof first, "the section headers");
    const std::uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : first.sh_size;
    names_index_ = header_.e_shstrndx != SHN_XINDEX ? header_.e_shstrndx : first.sh_link;
    if (count == 0 || count > kMostSections) fail(fmt::format("damaged: {} sections", count));
    if (names_index_ >= count) fail("damaged: no section of names");
    sections_.resize(count);
    read(header_.e_shoff, sections_.data(), count * sizeof(Elf64_Shdr), "the section headers");
  }

  std::string contents(const Elf64_Shdr& section, const std::string& what) const {
    if (section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_COMPRESSED) != 0) {
      fail(fmt::format("damaged: {} has no plain bytes", what));
    }
    if (section.sh_size > kLargestSection) {
      fail(fmt::format("damaged: {} claims {} bytes", what, section.sh_size));
    }
    std::string bytes(section.sh_size, '\0');
    read(section.sh_offset, bytes.data(), section.sh_size, what);
    return bytes;
  }

  std::string path_;
  files::RegularFile file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::uint64_t names_index_ = 0;
};

}  // namespace

std::string read_elf_section(const std::string& path, const std::string& section) {
  const ElfFile file(path);
  if (auto bytes = file.section(section)) return *bytes;
  file.fail(fmt::format(
      "not a Peakbench plugin: it has no section {}; build it with peakbench_add_plugin", section));
}

}  // namespace peakbench::manifest
