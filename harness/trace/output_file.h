// A file written piece by piece, there whole or not at all. For the room's own use.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "files/atomic_file.h"

namespace peakbench::trace {

// By files::AtomicFile, in large pieces. Every failure is a HostError with the path.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : file_(std::move(path)), buffer_(kFlushBytes + kFew) {}

  void write(std::string_view bytes);
  void write(char byte) { write_few(static_cast<unsigned char>(byte), 0, 1); }
  // The first `size` of sixteen bytes, each word's lowest first: no call and no loop, of which a
  // pickle would need hundreds of thousands.
  void write_few(std::uint64_t low, std::uint64_t high, std::size_t size) {
    static_assert(std::endian::native == std::endian::little);
    if (used_ >= kFlushBytes) flush();
    char* const at = buffer_.data() + used_;
    std::memcpy(at, &low, sizeof low);
    std::memcpy(at + sizeof low, &high, sizeof high);
    used_ += size;
  }
  void finish();

 private:
  static constexpr std::size_t kFlushBytes = 1 << 18, kFew = 16;
  void flush();

  files::AtomicFile file_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;  // of it
};

// As it is where it is UTF-8; else with U+FFFD for what is not. JSON and pickle hold nothing else.
std::string valid_utf8(const std::string& text);

}  // namespace peakbench::trace
