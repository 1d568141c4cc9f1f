#include "core/fat_binary.h"

#include <lz4.h>
#include <zstd.h>

#include <cstdint>

#include "core/value_at.h"

namespace peakbench::emulator {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
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
  return value_at<std::uint32_t>(static_cast<const char*>(image)) == kMagic;
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
