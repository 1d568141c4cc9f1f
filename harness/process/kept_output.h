// What a worker prints, in its log: the beginning and the end of it, however much that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace peakbench::process {

inline constexpr std::size_t kKeptHead = std::size_t{8} << 20;  // bytes, of a whole log file
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

}  // namespace peakbench::process
