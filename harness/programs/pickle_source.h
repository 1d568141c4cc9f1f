// The bytes of a pickle in their order, a stretch of the file at a time. For the module's own use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/regular_file.h"

namespace peakbench::programs {

class PickleSource {
 public:
  explicit PickleSource(const std::string& path);

  const std::string& path() const { return path_; }
  std::size_t position() const { return before_ + at_; }
  bool is_empty() const { return file_.size() == 0; }

  std::uint8_t byte();
  std::uint64_t little_endian(int bytes);
  std::string bytes(std::uint64_t count);
  std::string line();

  // ConfigError of the file, in one sentence.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  bool refill();
  [[noreturn]] void fail_short() const;

  std::string path_;
  files::RegularFile file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0, before_ = 0;
};

}  // namespace peakbench::programs
