// What machine code says of its kernels, read from images that are put together here as ptxas does
// it.
#include "core/cubin.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace peakbench::emulator::cubins {
namespace {

template <typename Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Format 4: a value behind the head.
std::string attribute(std::uint8_t which, const std::vector<std::uint32_t>& words) {
  std::string bytes;
  put<std::uint8_t>(bytes, 4), put(bytes, which);
  put(bytes, static_cast<std::uint16_t>(words.size() * sizeof words[0]));
  for (const auto word : words) put(bytes, word);
  return bytes;
}

// Index, ordinal and offset, and the size above 18 bits of other things.
std::string parameter(std::uint32_t ordinal, std::uint32_t offset, std::uint32_t size) {
  return attribute(0x17, {0, ordinal | offset << 16, size << 18 | 0x1f000});
}

// nvcc 13 for sm_80: (float*, const float*, int, a structure of 48 bytes, char).
std::string whole_info() {
  std::string info;
  put<std::uint32_t>(info, 0x00043704), put<std::uint32_t>(info, 0x82);  // the toolkit's version
  put<std::uint32_t>(info, 0x00003501);                                  // one without a value
  info += parameter(4, 72, 1) + parameter(3, 24, 48) + parameter(2, 16, 4) + parameter(1, 8, 8) +
          parameter(0, 0, 8);
  put<std::uint32_t>(info, 0x00ff1b03);  // a value in the head
  return info;
}

struct Section {
  std::string name, contents;
  std::uint32_t type = 1, link = 0;
  std::uint64_t bytes_without_contents = 0;  // of shared memory
};

struct Image {
  Elf64_Half machine = 190;
  std::uint8_t abi = 8;
  std::uint32_t flags = 0x6005004;  // sm_80
};

std::string cubin(std::vector<Section> sections, const Image& image = {}) {
  sections.insert(sections.begin(), {{}, {".shstrtab", {}}});
  for (const Section& section : sections) sections[1].contents += section.name + '\0';
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_ABIVERSION] = image.abi;
  header.e_machine = image.machine;
  header.e_flags = image.flags;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = 1;
  std::string contents, headers;
  std::uint32_t name = 0;
  for (const Section& section : sections) {
    Elf64_Shdr one{};
    one.sh_name = std::exchange(name, name + static_cast<std::uint32_t>(section.name.size()) + 1);
    one.sh_type = section.type;
    one.sh_link = section.link;
    one.sh_offset = sizeof header + contents.size();
    one.sh_size =
        section.contents.empty() ? section.bytes_without_contents : section.contents.size();
    contents += section.contents;
    put(headers, one);
  }
  header.e_shoff = sizeof header + contents.size();
  std::string bytes;
  put(bytes, header);
  return bytes + contents + headers;
}

std::string with_info(const std::string& info, const Image& image = {}) {
  return cubin({{".nv.info.step", info}}, image);
}

// A kernel "step" with 171 registers, 47,104 bytes of shared memory and a stack of 448.
std::string with_resources(std::uint64_t shared_section_bytes, const Image& image = {}) {
  std::string symbols(sizeof(Elf64_Sym), '\0');
  Elf64_Sym step{};
  step.st_name = 1;
  put(symbols, step);
  const std::string threads = attribute(0x05, {256, 1, 1}), barriers("\x02\x4c\x03\x00", 4);
  return cubin({{".strtab", std::string("\0step\0", 6)},
                {".symtab", symbols, SHT_SYMTAB, 2},
                {".nv.info", attribute(0x2f, {1, 171}) + attribute(0x12, {1, 448})},
                {".nv.info.step", whole_info() + threads + barriers},
                {".nv.shared.step", "", SHT_NOBITS, 0, shared_section_bytes}},
               image);
}

TEST(Cubin, HasTheParametersInOrder) {
  const auto kernels = kernels_of_cubin(with_info(whole_info()).data());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels.at("step").parameters, (ParameterSizes{8, 8, 4, 48, 1}));
  EXPECT_EQ(kernels_of_cubin(with_info("").data()).at("step").parameters, ParameterSizes{})
      << "a kernel without any";
}

TEST(Cubin, HasWhatTheKernelUses) {
  const auto kernel = kernels_of_cubin(with_resources(47104).data()).at("step");
  EXPECT_EQ(kernel.registers, 171);
  EXPECT_EQ(kernel.static_shared_bytes, 47104u);
  EXPECT_EQ(kernel.local_bytes, 448u);
  EXPECT_EQ(kernel.max_threads, 256);
  EXPECT_EQ(kernel.barriers, 3);
  EXPECT_EQ(kernel.arch, 80);
}

TEST(Cubin, OfCuda12HasTheKindOfCardInAnotherByte) {
  const auto kernel =
      kernels_of_cubin(with_resources(47104, {.abi = 7, .flags = 0x00560556}).data()).at("step");
  EXPECT_EQ(kernel.arch, 86);
}

TEST(Cubin, OfHopperCountsWhatTheSystemReserves) {
  const Image hopper{.flags = 0x6005a04};
  EXPECT_EQ(
      kernels_of_cubin(with_resources(47104 + 1024, hopper).data()).at("step").static_shared_bytes,
      47104u);
  EXPECT_EQ(kernels_of_cubin(with_resources(0, hopper).data()).at("step").static_shared_bytes, 0u);
}

TEST(Cubin, OfAnotherKindIsNotKnown) {
  EXPECT_TRUE(kernels_of_cubin(nullptr).empty());
  const std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n// and so on, longer than a header";
  EXPECT_TRUE(kernels_of_cubin(ptx.data()).empty());
  EXPECT_TRUE(kernels_of_cubin(with_info(whole_info(), {.machine = EM_X86_64}).data()).empty());
  EXPECT_TRUE(kernels_of_cubin(with_info(parameter(1, 8, 8)).data()).empty())
      << "the first is missing";
  EXPECT_TRUE(kernels_of_cubin(with_info(parameter(0, 0, 8).substr(0, 10)).data()).empty())
      << "cut short";
}

TEST(Cubin, WordsAreWhatCouldBeAnAddress) {
  const std::uint64_t pointer = 0x7000, null = 0;
  const std::int32_t number = -1;
  const std::uint64_t structure[] = {1, 0x8000, 0};
  void* arguments[] = {const_cast<std::uint64_t*>(&pointer), const_cast<std::int32_t*>(&number),
                       const_cast<std::uint64_t*>(structure), const_cast<std::uint64_t*>(&null)};
  EXPECT_EQ(words_of({8, 4, 24, 8}, arguments), (std::vector<std::uint64_t>{0x7000, 1, 0x8000}));
}

}  // namespace
}  // namespace peakbench::emulator::cubins
