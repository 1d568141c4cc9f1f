#include "core/cubin.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace peakbench::emulator {
namespace {

constexpr Elf64_Half kMachine = 190;  // EM_CUDA
// Of a kernel named K: .nv.info.K and .nv.shared.K. Of all of them: .nv.info.
constexpr std::string_view kInfo = ".nv.info", kShared = ".nv.shared.",
                           kReserved = ".nv.shared.reserved.0";
// An attribute: how its value is stored, what it is, and two bytes that are the value or its size.
constexpr std::size_t kHeadBytes = 4;
constexpr std::uint8_t kInHead = 0x02, kSized = 0x04;
constexpr std::uint8_t kMaxThreads = 0x05, kMinStackSize = 0x12, kParameter = 0x17,
                       kRegisterCount = 0x2f, kBarriers = 0x4c;
constexpr std::size_t kParameterBytes = 12;
constexpr unsigned kSizeShift = 18;  // of a parameter's last word; below it are alignment and space
constexpr std::size_t kMostParameters = 4096;
// From sm_90 on, .nv.shared.K begins with the KiB that the system reserves in each block.
constexpr std::uint64_t kReservedBytes = 1024;

// A value at an address that need not be aligned for it.
template <typename Value>
Value value_at(const char* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

struct Attribute {
  std::uint8_t is;
  std::uint16_t head;  // the value of one that has no more
  std::string_view value;
};

// Nullopt: the section ends within one.
std::optional<std::vector<Attribute>> attributes_in(std::string_view section) {
  std::vector<Attribute> attributes;
  while (section.size() >= kHeadBytes) {
    const auto format = static_cast<std::uint8_t>(section[0]);
    Attribute one{static_cast<std::uint8_t>(section[1]), value_at<std::uint16_t>(&section[2]), {}};
    section.remove_prefix(kHeadBytes);
    if (format == kInHead) one.head &= 0xff;
    if (format == kSized) {
      if (one.head > section.size()) return std::nullopt;
      one.value = section.substr(0, one.head);
      section.remove_prefix(one.head);
    }
    attributes.push_back(one);
  }
  return attributes;
}

std::uint32_t word(const Attribute& attribute, std::size_t index) {
  const auto at = index * sizeof(std::uint32_t);
  return at + sizeof(std::uint32_t) <= attribute.value.size()
             ? value_at<std::uint32_t>(attribute.value.data() + at)
             : 0;
}

// Nullopt: there is a parameter whose number cannot be.
std::optional<ParameterSizes> parameters_of(const std::vector<Attribute>& attributes) {
  std::map<std::uint16_t, std::uint32_t> found;
  for (const Attribute& one : attributes)
    if (one.is == kParameter && one.value.size() == kParameterBytes)
      found[value_at<std::uint16_t>(one.value.data() + 4)] = word(one, 2) >> kSizeShift;
  ParameterSizes sizes;
  for (const auto& [ordinal, bytes] : found) {
    if (ordinal != sizes.size() || ordinal >= kMostParameters) return std::nullopt;
    sizes.push_back(bytes);
  }
  return sizes;
}

class Cubin {
 public:
  explicit Cubin(const char* bytes) : bytes_(bytes), header_(value_at<Elf64_Ehdr>(bytes)) {
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_machine != kMachine ||
        header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shstrndx >= header_.e_shnum)
      return;
    for (std::size_t i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(value_at<Elf64_Shdr>(bytes + header_.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  Kernels kernels() {
    for (const Elf64_Shdr& one : sections_) {
      const auto name = name_of(one);
      if (!name) return {};
      if (name->starts_with(kInfo) && name->size() > kInfo.size() && (*name)[kInfo.size()] == '.')
        add_kernel(std::string(name->substr(kInfo.size() + 1)), contents(one));
    }
    for (const Elf64_Shdr& one : sections_) {
      const auto name = *name_of(one);
      if (name == kInfo) add_resources(contents(one));
      if (name.starts_with(kShared)) add_shared(name.substr(kShared.size()), one.sh_size);
    }
    return std::move(kernels_);
  }

 private:
  std::string_view contents(const Elf64_Shdr& section) const {
    return {bytes_ + section.sh_offset, section.sh_size};
  }

  static std::optional<std::string_view> text_at(std::string_view texts, std::size_t at) {
    if (at >= texts.size()) return std::nullopt;
    texts.remove_prefix(at);
    return texts.substr(0, std::min(texts.find('\0'), texts.size()));
  }

  std::optional<std::string_view> name_of(const Elf64_Shdr& section) const {
    return text_at(contents(sections_[header_.e_shstrndx]), section.sh_name);
  }

  // ABI 8 (CUDA 13) has it one byte higher than ABI 7.
  int arch() const {
    const auto flags = header_.e_ident[EI_ABIVERSION] >= 8 ? header_.e_flags >> 8 : header_.e_flags;
    return static_cast<int>(flags & 0xff);
  }

  void add_kernel(std::string name, std::string_view info) {
    const auto attributes = attributes_in(info);
    auto parameters = attributes ? parameters_of(*attributes) : std::nullopt;
    if (!parameters) return;
    KernelFacts facts{.parameters = std::move(*parameters), .arch = arch()};
    for (const Attribute& one : *attributes) {
      if (one.is == kMaxThreads)
        facts.max_threads = static_cast<int>(word(one, 0) * word(one, 1) * word(one, 2));
      if (one.is == kBarriers) facts.barriers = one.head;
    }
    kernels_.emplace(std::move(name), std::move(facts));
  }

  KernelFacts* kernel_of_symbol(std::uint32_t index) {
    for (const Elf64_Shdr& one : sections_) {
      if (one.sh_type != SHT_SYMTAB || one.sh_link >= sections_.size()) continue;
      const auto symbols = contents(one);
      if (index >= symbols.size() / sizeof(Elf64_Sym)) return nullptr;
      const auto symbol = value_at<Elf64_Sym>(symbols.data() + index * sizeof(Elf64_Sym));
      const auto name = text_at(contents(sections_[one.sh_link]), symbol.st_name);
      const auto found = name ? kernels_.find(std::string(*name)) : kernels_.end();
      return found == kernels_.end() ? nullptr : &found->second;
    }
    return nullptr;
  }

  void add_resources(std::string_view info) {
    const auto attributes = attributes_in(info);
    if (!attributes) return;
    for (const Attribute& one : *attributes) {
      if (one.is != kRegisterCount && one.is != kMinStackSize) continue;
      KernelFacts* const kernel = kernel_of_symbol(word(one, 0));
      if (!kernel) continue;
      if (one.is == kRegisterCount) kernel->registers = static_cast<int>(word(one, 1));
      if (one.is == kMinStackSize) kernel->local_bytes = word(one, 1);
    }
  }

  void add_shared(std::string_view kernel, std::uint64_t bytes) {
    const auto found = kernels_.find(std::string(kernel));
    if (found == kernels_.end()) return;
    const std::uint64_t reserved = arch() >= 90 ? kReservedBytes : 0;
    found->second.static_shared_bytes =
        static_cast<std::uint32_t>(bytes - std::min(bytes, reserved));
  }

  const char* bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
  Kernels kernels_;
};

}  // namespace

std::vector<std::uint64_t> words_of(const ParameterSizes& sizes, void* const* arguments) {
  std::vector<std::uint64_t> words;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto* bytes = static_cast<const char*>(arguments[i]);
    for (std::size_t at = 0; bytes && at + sizeof(std::uint64_t) <= sizes[i];
         at += sizeof(std::uint64_t))
      if (const auto one = value_at<std::uint64_t>(bytes + at)) words.push_back(one);
  }
  return words;
}

Kernels kernels_of_cubin(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  if (!bytes || std::memcmp(bytes, ELFMAG, SELFMAG) != 0) return {};
  return Cubin(bytes).kernels();
}

namespace {

constexpr std::uint32_t kFatBinaryMagic = 0xba55ed50;
constexpr std::uint16_t kCubin = 2;  // 1: PTX
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;
constexpr std::uint64_t kOneCardOnly = 0x100000;  // sm_90a: for 9.0, and for no later 9.x
constexpr std::uint64_t kMostBytes = 1ull << 30;  // a damaged length asks for no more memory

struct Header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // of all entries
};

struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // that follow the header
  std::uint32_t packed_bytes, reserved;
  std::uint16_t toolkit_minor, toolkit_major;
  std::uint32_t arch;
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags, reserved_2;
  std::uint64_t unpacked_bytes;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);

// Code for 8.0 runs on 8.6, and on no card of another major version.
bool runs_on(const Entry& entry, std::uint32_t major, std::uint32_t minor) {
  if (entry.kind != kCubin) return false;
  if (entry.flags & kOneCardOnly) return entry.arch == major * 10 + minor;
  return entry.arch / 10 == major && entry.arch % 10 <= minor;
}

// The nearer code, or that for this very card.
bool is_better(const Entry& one, const Entry& other) {
  if (one.arch != other.arch) return one.arch > other.arch;
  return (one.flags & kOneCardOnly) > (other.flags & kOneCardOnly);
}

std::string unpacked(const Entry& entry, const char* packed) {
  if (!(entry.flags & (kLz4 | kZstd))) return {packed, entry.bytes};
  if (entry.packed_bytes > entry.bytes || entry.unpacked_bytes > kMostBytes) return "";
  std::string out(entry.unpacked_bytes, '\0');
  const auto bytes = entry.flags & kZstd
                         ? ZSTD_decompress(out.data(), out.size(), packed, entry.packed_bytes)
                         : static_cast<std::size_t>(LZ4_decompress_safe(
                               packed, out.data(), static_cast<int>(entry.packed_bytes),
                               static_cast<int>(out.size())));
  return bytes == out.size() ? out : "";
}

}  // namespace

bool is_fat_binary(const void* image) {
  return value_at<std::uint32_t>(static_cast<const char*>(image)) == kFatBinaryMagic;
}

std::string code_for(const void* fat_binary, int major, int minor) {
  const auto* at = static_cast<const char*>(fat_binary);
  const auto header = value_at<Header>(at);
  at += header.header_bytes;
  const char* const end = at + header.bytes;
  Entry best{};
  const char* code = nullptr;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(Entry))) {
    const auto entry = value_at<Entry>(at);
    const auto room = static_cast<std::uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > room ||
        entry.bytes > room - entry.header_bytes)
      return "";
    if (runs_on(entry, static_cast<std::uint32_t>(major), static_cast<std::uint32_t>(minor)) &&
        (!code || is_better(entry, best))) {
      best = entry;
      code = at + entry.header_bytes;
    }
    at += entry.header_bytes + entry.bytes;
  }
  return code ? unpacked(best, code) : "";
}

}  // namespace peakbench::emulator
