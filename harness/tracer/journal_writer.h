// The journal of one process. Thread-safe; calls nothing of LibTorch or Python, because it is
// written under an allocator's lock.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracer/journal_format.h"

namespace peakbench::tracer {

class JournalWriter {
 public:
  // In the folder, named after the process. Nothing is recorded where there can be no such file.
  // `most_bytes`: then it is full; 0: 16 GiB.
  bool open(const std::string& folder, std::uint64_t most_bytes = 0);
  void set_rank(std::int32_t rank, RankSource source);

  void add(const Record& record);
  // The number of a text, written the first time.
  std::int32_t text(std::string_view text);
  std::int32_t frame(std::int32_t parent, std::int32_t file, std::int32_t function,
                     std::int32_t line);
  void end();  // the program's own
  // In a forked process, whose file is another's.
  void forget() {
    window_ = nullptr;
    is_forked_ = true;
  }
  // There: says once that it has something to trace.
  void mark_forked();
  bool is_open() const { return window_.load(std::memory_order_relaxed) != nullptr; }

 private:
  void add_locked(const Record& record);
  bool next_window();
  void stop(Stopped why);

  std::mutex mutex_;
  std::string folder_;
  std::atomic<bool> is_forked_{false};
  int file_ = -1;
  Header* header_ = nullptr;
  std::atomic<Record*> window_{nullptr};  // what is mapped of the file
  std::uint64_t in_window_ = 0, windows_ = 0, most_windows_ = 0;
  std::int32_t frames_ = 0;
  std::unordered_map<std::string, std::int32_t> texts_;
};

}  // namespace peakbench::tracer
