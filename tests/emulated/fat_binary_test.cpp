// Which code of a fat binary a card runs, and how it is unpacked: by binaries put together here as
// nvcc does it.
#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/cubin.h"

namespace peakbench::emulator::fat_binaries {
namespace {

constexpr std::uint64_t kPlain = 0x11, kLz4 = 0x2011, kZstd = 0x8011, kOneCardOnly = 0x100000;
constexpr std::uint16_t kPtx = 1, kCubin = 2;

struct Code {
  std::uint16_t kind;
  std::uint32_t arch;
  std::string text;
  std::uint64_t flags = kPlain;
};

template <typename Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string packed(const Code& code) {
  std::string out(ZSTD_compressBound(code.text.size()) + 64, '\0');
  if (code.flags & 0x8000) {
    out.resize(ZSTD_compress(out.data(), out.size(), code.text.data(), code.text.size(), 1));
  } else if (code.flags & 0x2000) {
    out.resize(LZ4_compress_default(code.text.data(), out.data(),
                                    static_cast<int>(code.text.size()),
                                    static_cast<int>(out.size())));
  } else {
    return code.text;
  }
  return out;
}

std::string entry(const Code& code) {
  const std::string payload = packed(code);
  const bool is_packed = code.flags & 0xa000;
  const std::size_t padded = (payload.size() + 7) / 8 * 8;
  std::string bytes;
  put(bytes, code.kind), put<std::uint16_t>(bytes, 0x101), put<std::uint32_t>(bytes, 64);
  put<std::uint64_t>(bytes, padded);
  put<std::uint32_t>(bytes, is_packed ? payload.size() : 0), put<std::uint32_t>(bytes, 0);
  put<std::uint16_t>(bytes, 8), put<std::uint16_t>(bytes, 1), put(bytes, code.arch);
  put<std::uint64_t>(bytes, 0), put(bytes, code.flags), put<std::uint64_t>(bytes, 0);
  put<std::uint64_t>(bytes, is_packed ? code.text.size() : 0);
  bytes += payload;
  bytes.append(padded - payload.size(), '\0');
  return bytes;
}

std::string fat_binary(const std::vector<Code>& codes) {
  std::string entries, bytes;
  for (const Code& code : codes) entries += entry(code);
  put<std::uint32_t>(bytes, 0xba55ed50), put<std::uint16_t>(bytes, 1);
  put<std::uint16_t>(bytes, 16), put<std::uint64_t>(bytes, entries.size());
  return bytes + entries;
}

TEST(FatBinary, ACardRunsTheNearestCodeOfItsMajorVersion) {
  const auto binary = fat_binary({{kCubin, 80, "code 8.0"},
                                  {kCubin, 86, "code 8.6"},
                                  {kPtx, 89, "text 8.9"},
                                  {kCubin, 90, "code 9.0"},
                                  {kCubin, 90, "code 9.0a", kPlain | kOneCardOnly},
                                  {kCubin, 100, "code10.0"},
                                  {kCubin, 103, "code10.3", kPlain | kOneCardOnly},
                                  {kCubin, 120, "code12.0"}});
  EXPECT_EQ(code_for(binary.data(), 8, 0), "code 8.0");
  EXPECT_EQ(code_for(binary.data(), 8, 9), "code 8.6");
  EXPECT_EQ(code_for(binary.data(), 9, 0).substr(0, 9), "code 9.0a");
  EXPECT_EQ(code_for(binary.data(), 10, 0), "code10.0");
  EXPECT_EQ(code_for(binary.data(), 10, 3), "code10.3");
  EXPECT_EQ(code_for(binary.data(), 10, 1), "code10.0") << "10.3a is for no other card";
  EXPECT_EQ(code_for(binary.data(), 12, 1), "code12.0");
  EXPECT_EQ(code_for(binary.data(), 7, 5), "") << "the driver would compile PTX for it";
}

TEST(FatBinary, CodeIsUnpacked) {
  const std::string text(100000, 'x');
  for (const auto flags : {kPlain, kLz4, kZstd}) {
    const auto binary = fat_binary({{kCubin, 80, text, flags}});
    ASSERT_TRUE(is_fat_binary(binary.data()));
    EXPECT_EQ(code_for(binary.data(), 8, 0), text) << std::hex << flags;
  }
}

TEST(FatBinary, DamagedCodeIsNone) {
  auto binary = fat_binary({{kCubin, 80, std::string(100000, 'x'), kZstd}});
  binary[16 + 64] ^= 1;
  EXPECT_EQ(code_for(binary.data(), 8, 0), "");
  binary = fat_binary({{kCubin, 80, "code"}});
  binary[16 + 4] = 3;  // a header smaller than can be
  EXPECT_EQ(code_for(binary.data(), 8, 0), "");
}

}  // namespace
}  // namespace peakbench::emulator::fat_binaries
