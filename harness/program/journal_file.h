// The bytes of a journal (tracer/journal_format.h), a stretch at a time. A traced process or a full
// disk may have left anything. For the module's own use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "files/regular_file.h"
#include "tracer/journal_format.h"

namespace peakbench::program {

class JournalFile {
 public:
  // Throws ConfigError, a clause without the path ("it is cut short"): no regular file, no header,
  // no whole records.
  explicit JournalFile(const std::filesystem::path& path);

  const tracer::Header& header() const { return header_; }
  std::uint64_t left() const { return left_; }  // records
  tracer::Record next();                        // of those that are left; throws ConfigError

 private:
  void read(char* to, std::size_t bytes);

  files::RegularFile file_;
  tracer::Header header_{};
  std::uint64_t left_ = 0;
  std::vector<tracer::Record> buffer_;
  std::size_t at_ = 0;
};

}  // namespace peakbench::program
