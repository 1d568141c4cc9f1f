#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"

namespace peakbench::trace {

// A file that is written in pieces, atomically. For the module's own use.

// By files::AtomicFile, in large pieces. Every failure is a HostError with the path.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : file_(std::move(path)), buffer_(kFlushBytes + kFew) {}

  void write(std::string_view bytes);
  void write(char byte) { write_few(static_cast<unsigned char>(byte), 0, 1); }
  // Writes the first `size` of sixteen bytes, each word's lowest byte first. Without a call or a
  // loop, because a pickle needs hundreds of thousands of these.
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

// Writes the part of Python's pickle format, protocol 2, that memory snapshots need. For the
// module's own use.
//
// Read by Python's pickle and by the unpickler of PyTorch's MemoryViz.js. The latter knows few
// opcodes, and appends a batch by one call with as many arguments; hence protocol 2 and batches of
// 1000. Source of the opcodes: Python's pickletools.py.

class PickleWriter {
 public:
  // What is written in full once, and then by its number in the memo.
  struct Shared {
    std::int64_t memo = -1;
  };
  struct Word : Shared {
    explicit Word(const std::string& words) : text(valid_utf8(words)) {}
    std::string text;
  };

  explicit PickleWriter(OutputFile& file);

  void integer(std::int64_t value);
  void boolean(bool value);
  void text(const std::string& value);
  void text(Word& word);
  void pair(std::int64_t first, std::int64_t second);  // a tuple

  // item() before every element of a list; in a dictionary, keys and values in turn.
  void begin_list();
  void item();
  void end_list();
  void begin_dict();
  void end_dict();

  bool again(const Shared& shared);  // true where it was remembered, and is written by that
  void remember(Shared& shared);     // what was written last

  void stop();

 private:
  void write(char opcode, std::uint64_t argument, int bytes);

  OutputFile& file_;
  std::int64_t memo_ = 0;
  std::vector<std::int64_t> open_lists_;  // elements in the batch
};

}  // namespace peakbench::trace
