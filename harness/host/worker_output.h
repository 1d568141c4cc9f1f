#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::process {

// What a worker prints, in its log: the beginning and the end of it, however much that is.

inline constexpr std::size_t kKeptHead = std::size_t{8} << 20;  // bytes, of a complete log file
inline constexpr std::size_t kKeptTail = std::size_t{8} << 20;  // bytes, of one worker at most

// The end of what was given to it, at least `capacity` bytes where there were so many.
class RollingEnd {
 public:
  explicit RollingEnd(std::size_t capacity) : capacity_(capacity) {}
  void add(std::string_view bytes);
  std::string_view bytes() const;  // the last `capacity` at most

 private:
  std::size_t capacity_;
  std::string kept_;
};

// Never throws; what cannot be written is remembered, and the last words all the same.
class KeptOutput {
 public:
  // `file`: open for appending; a log of several workers stays below the two limits together, but
  // for the last words of each.
  explicit KeptOutput(int file);

  void add(std::string_view bytes);
  void finish();  // writes the end, and before it how much was left out

  int error() const { return error_; }  // an errno; 0: all is in the file
  std::string_view last_words() const { return last_.bytes(); }

 private:
  void write_out(std::string_view bytes);

  int file_;
  std::size_t head_room_, tail_room_;
  std::size_t after_head_ = 0;  // bytes that came after the beginning
  RollingEnd tail_, last_;
  int error_ = 0;
};

// The lines of a worker's progress, out of a pipe that a plugin can write into as it likes.

class ProgressLines {
 public:
  // `pipe`: its reading end, which no longer blocks from now on.
  explicit ProgressLines(int pipe);

  // Reads what a pipe holds and no more; hands on a few lines and the newest one, for progress is
  // what is true now. Lines that are too long to be progress are dropped. False at the pipe's end.
  bool read_some(const std::function<void(const std::string&)>& on_line);

 private:
  void take(std::string_view bytes, std::vector<std::string>& lines);

  int pipe_;
  std::string rest_;       // of a line whose end has not come
  bool too_long_ = false;  // that line
};

}  // namespace peakbench::process
