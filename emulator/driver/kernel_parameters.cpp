#include "driver/kernel_parameters.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace peakbench::emulator::driver {
namespace {

constexpr Elf64_Half kMachine = 190;  // EM_CUDA
constexpr std::string_view kInfo = ".nv.info.";
// An entry: how its value is stored, what it is of, and two bytes that are the value or its size.
constexpr std::uint8_t kSized = 0x04, kParameter = 0x17;
constexpr std::size_t kEntryHead = 4, kParameterBytes = 12;
constexpr unsigned kSizeShift = 18;  // of the last word; below it are alignment and space
constexpr std::size_t kMostParameters = 4096;

template <typename Value>
Value value_at(const char* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Nullopt: there is one whose number cannot be.
std::optional<ParameterSizes> parameters_in(const char* at, const char* end) {
  std::map<std::uint16_t, std::uint32_t> found;
  while (end - at >= static_cast<std::ptrdiff_t>(kEntryHead)) {
    const auto format = static_cast<std::uint8_t>(at[0]), of = static_cast<std::uint8_t>(at[1]);
    const auto size = format == kSized ? value_at<std::uint16_t>(at + 2) : std::uint16_t{0};
    at += kEntryHead;
    if (size > end - at) return std::nullopt;
    if (format == kSized && of == kParameter && size == kParameterBytes)
      found[value_at<std::uint16_t>(at + 4)] = value_at<std::uint32_t>(at + 8) >> kSizeShift;
    at += size;
  }
  ParameterSizes sizes;
  for (const auto& [ordinal, bytes] : found) {
    if (ordinal != sizes.size() || ordinal >= kMostParameters) return std::nullopt;
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace

std::map<std::string, ParameterSizes> kernels_in(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  if (!bytes || std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return {};
  const auto header = value_at<Elf64_Ehdr>(bytes);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shstrndx >= header.e_shnum)
    return {};
  const auto section = [&](std::size_t index) {
    return value_at<Elf64_Shdr>(bytes + header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  const auto names = section(header.e_shstrndx);
  std::map<std::string, ParameterSizes> kernels;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto one = section(i);
    if (one.sh_name >= names.sh_size) return {};
    const char* name = bytes + names.sh_offset + one.sh_name;
    const std::string_view text(name, strnlen(name, names.sh_size - one.sh_name));
    if (!text.starts_with(kInfo)) continue;
    const char* begin = bytes + one.sh_offset;
    auto sizes = parameters_in(begin, begin + one.sh_size);
    if (sizes) kernels.emplace(text.substr(kInfo.size()), std::move(*sizes));
  }
  return kernels;
}

std::vector<std::uint64_t> words_of(const ParameterSizes& sizes, void* const* arguments) {
  std::vector<std::uint64_t> words;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* bytes = static_cast<const char*>(arguments[i]);
    for (std::size_t at = 0; bytes && at + sizeof(std::uint64_t) <= sizes[i];
         at += sizeof(std::uint64_t))
      if (const auto word = value_at<std::uint64_t>(bytes + at)) words.push_back(word);
  }
  return words;
}

}  // namespace peakbench::emulator::driver
