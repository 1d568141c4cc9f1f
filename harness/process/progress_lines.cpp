#include "process/progress_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace peakbench::process {
namespace {

constexpr std::size_t kAtOnce = 65536;      // what a pipe holds
constexpr std::size_t kLongestLine = 4096;  // what a pipe takes whole
constexpr std::size_t kLinesAtOnce = 16;

}  // namespace

ProgressLines::ProgressLines(int pipe) : pipe_(pipe) { fcntl(pipe_, F_SETFL, O_NONBLOCK); }

bool ProgressLines::read_some(const std::function<void(const std::string&)>& on_line) {
  std::vector<std::string> lines;
  bool open = true;
  char chunk[8192];
  for (std::size_t total = 0; total < kAtOnce;) {
    const ssize_t count = read(pipe_, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    open = count > 0 || (count < 0 && errno == EAGAIN);
    if (count <= 0) break;
    total += static_cast<std::size_t>(count);
    take({chunk, static_cast<std::size_t>(count)}, lines);
  }
  for (const auto& line : lines) on_line(line);
  return open;
}

void ProgressLines::take(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    too_long_ = too_long_ || rest_.size() + part.size() > kLongestLine;
    if (!too_long_) rest_ += part;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (!too_long_) {
      if (lines.size() > kLinesAtOnce) lines.pop_back();
      lines.push_back(rest_);
    }
    rest_.clear();
    too_long_ = false;
  }
}

}  // namespace peakbench::process
