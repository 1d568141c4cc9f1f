#include "reports/history/packed.h"

#include <zlib.h>

#include <stdexcept>

#include "errors/errors.h"

namespace peakbench::history {
namespace {

// zlib makes nothing longer than this out of a byte: a damaged length asks for no memory.
constexpr std::size_t kMostOfByte = 1032;

const Bytef* bytes_of(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

}  // namespace

std::string pack(std::string_view text) {
  uLongf size = compressBound(text.size());
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(text), text.size(),
                Z_DEFAULT_COMPRESSION) != Z_OK)
    throw std::runtime_error("zlib: not enough memory to compress a run");
  packed.resize(size);
  return packed;
}

std::string unpack(const std::string& packed, std::int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes ||
      static_cast<std::size_t>(bytes) > packed.size() * kMostOfByte)
    throw ConfigError("its length is damaged");
  std::string text(static_cast<std::size_t>(bytes), '\0');
  auto size = static_cast<uLongf>(bytes);
  const int code =
      uncompress(reinterpret_cast<Bytef*>(text.data()), &size, bytes_of(packed), packed.size());
  if (code != Z_OK || size != text.size()) throw ConfigError("its compressed text is damaged");
  return text;
}

std::int64_t checksum(std::string_view text) {
  return static_cast<std::int64_t>(crc32_z(crc32(0, nullptr, 0), bytes_of(text), text.size()));
}

}  // namespace peakbench::history
