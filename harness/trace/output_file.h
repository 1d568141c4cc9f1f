// A file written piece by piece, there whole or not at all. For the room's own use.
#pragma once

#include <string>
#include <string_view>

#include "files/atomic_file.h"

namespace peakbench::trace {

// By files::AtomicFile, in large pieces. Every failure is a HostError with the path.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : file_(std::move(path)) {}

  void write(std::string_view bytes) {
    buffer_.append(bytes);
    if (buffer_.size() >= kFlushBytes) flush();
  }
  void write(char byte) { write(std::string_view(&byte, 1)); }
  void finish();

 private:
  static constexpr std::size_t kFlushBytes = 1 << 18;
  void flush();

  files::AtomicFile file_;
  std::string buffer_;
};

// As it is where it is UTF-8; else with U+FFFD for what is not. JSON and pickle hold nothing else.
std::string valid_utf8(const std::string& text);

}  // namespace peakbench::trace
