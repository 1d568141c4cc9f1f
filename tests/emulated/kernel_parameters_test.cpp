// The parameters of kernels, read from images that were put together here as ptxas does it.
#include "driver/kernel_parameters.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

namespace peakbench::emulator::driver {
namespace {

template <typename Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Format 4, attribute 0x17: index, ordinal, offset, and the size above 18 bits of other things.
std::string parameter(std::uint16_t ordinal, std::uint16_t offset, std::uint32_t size) {
  std::string bytes;
  put<std::uint32_t>(bytes, 0x000c1704);
  put<std::uint32_t>(bytes, 0);
  put(bytes, ordinal);
  put(bytes, offset);
  put<std::uint32_t>(bytes, size << 18 | 0x1f000);
  return bytes;
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

std::string cubin(const std::string& info, Elf64_Half machine = 190) {
  const std::string names("\0.shstrtab\0.nv.info.step\0", 25);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = machine;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  header.e_shoff = sizeof header + names.size() + info.size();
  Elf64_Shdr none{}, text{}, facts{};
  text.sh_name = 1;
  text.sh_offset = sizeof header;
  text.sh_size = names.size();
  facts.sh_name = 11;
  facts.sh_offset = sizeof header + names.size();
  facts.sh_size = info.size();
  std::string image;
  put(image, header);
  image += names + info;
  put(image, none), put(image, text), put(image, facts);
  return image;
}

TEST(KernelParameters, AreReadInOrder) {
  const auto kernels = kernels_in(cubin(whole_info()).data());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels.at("step"), (ParameterSizes{8, 8, 4, 48, 1}));
  EXPECT_EQ(kernels_in(cubin("").data()).at("step"), ParameterSizes{}) << "a kernel without any";
}

TEST(KernelParameters, OfAnotherImageAreNotKnown) {
  EXPECT_TRUE(kernels_in(nullptr).empty());
  const std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n// and so on, longer than a header";
  EXPECT_TRUE(kernels_in(ptx.data()).empty());
  EXPECT_TRUE(kernels_in(cubin(whole_info(), EM_X86_64).data()).empty());
  EXPECT_TRUE(kernels_in(cubin(parameter(1, 8, 8)).data()).empty()) << "the first is missing";
  EXPECT_TRUE(kernels_in(cubin(parameter(0, 0, 8).substr(0, 10)).data()).empty()) << "cut short";
}

TEST(KernelParameters, WordsAreWhatCouldBeAnAddress) {
  const std::uint64_t pointer = 0x7000, null = 0;
  const std::int32_t number = -1;
  const std::uint64_t structure[] = {1, 0x8000, 0};
  void* arguments[] = {const_cast<std::uint64_t*>(&pointer), const_cast<std::int32_t*>(&number),
                       const_cast<std::uint64_t*>(structure), const_cast<std::uint64_t*>(&null)};
  EXPECT_EQ(words_of({8, 4, 24, 8}, arguments), (std::vector<std::uint64_t>{0x7000, 1, 0x8000}));
}

}  // namespace
}  // namespace peakbench::emulator::driver
