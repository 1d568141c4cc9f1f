// A file written piece by piece, there whole or not at all. For the room's own use.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace peakbench::trace {

// Written beside `path`, renamed by finish(). Every failure is a HostError with the path; a file
// that was not finished leaves nothing behind.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes) {
    buffer_.append(bytes);
    if (buffer_.size() >= kFlushBytes) flush();
  }
  void write(char byte) { write(std::string_view(&byte, 1)); }
  void finish();

 private:
  static constexpr std::size_t kFlushBytes = 1 << 18;
  [[noreturn]] void fail() const;
  void flush();

  std::string path_, partial_, buffer_;
  std::FILE* file_;
};

// As it is where it is UTF-8; else with U+FFFD for what is not. JSON and pickle hold nothing else.
std::string valid_utf8(const std::string& text);

}  // namespace peakbench::trace
