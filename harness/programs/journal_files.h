#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/regular_file.h"
#include "recording/journal.h"

namespace peakbench::programs {

// The bytes of a journal (recording/journal.h), a stretch at a time. A traced process or a full
// disk may have left anything. For the module's own use.

class JournalFile {
 public:
  // Throws ConfigError, a clause without the path ("it is cut short"): no regular file, no header,
  // no complete record.
  explicit JournalFile(const std::filesystem::path& path);

  const recording::Header& header() const { return header_; }
  std::uint64_t left() const { return left_; }  // records
  recording::Record next();                     // of those that are left; throws ConfigError

 private:
  void read(char* to, std::size_t bytes);

  files::RegularFile file_;
  recording::Header header_{};
  std::uint64_t left_ = 0;
  std::vector<recording::Record> buffer_;
  std::size_t at_ = 0;
};

// Processes of a traced program that use PyTorch and leave no trace: what its figures lack.

struct Untraced {
  std::int32_t pid = 0;
  std::int64_t used_bytes = 0;  // maximum, of a card; 0: unknown
  std::string why = "it was forked, or ran Python without its environment";
};

// 4711 of "4711.journal"; 0 of another name.
std::int32_t process_of(const std::filesystem::path& file);

// "process 4711 used PyTorch and was not traced: ..."
std::string sentence_of(const Untraced& process);

// Finds child processes that have loaded PyTorch without the tracer: Python without its
// environment. Checks every 0.2 s. For programs without an emulated card, which knows its users.
// Reads /proc; takes no signals.
class UntracedWatch {
 public:
  explicit UntracedWatch(std::filesystem::path tracer);  // the library
  UntracedWatch(const UntracedWatch&) = delete;
  UntracedWatch& operator=(const UntracedWatch&) = delete;
  ~UntracedWatch();
  // Until now; those that have a journal here are traced, whenever they were seen.
  std::vector<Untraced> found(const std::filesystem::path& journals) const;

 private:
  void look();

  const std::filesystem::path tracer_;
  mutable std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::set<std::int32_t> seen_;
  std::thread thread_;
};

// Forked processes that have allocated of the CPU after PyTorch was traced: the tracer leaves a
// mark for each (recording/journal.h) among the journals.
std::vector<Untraced> forked_untraced(const std::filesystem::path& journals);

}  // namespace peakbench::programs
