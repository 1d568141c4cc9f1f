// The lines of a worker's progress, out of a pipe that a plugin can write into as it likes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace peakbench::process {

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
