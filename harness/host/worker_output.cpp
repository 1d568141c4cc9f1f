#include "host/worker_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace peakbench::process {
namespace {

constexpr std::size_t kLastWords = 16384;
constexpr std::size_t kLeastTail = 65536;  // even in a log that is full

std::size_t size_of(int file) {
  struct stat facts {};
  return fstat(file, &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : 0;
}

std::size_t room(std::size_t limit, std::size_t taken) { return limit - std::min(limit, taken); }

}  // namespace

void RollingEnd::add(std::string_view bytes) {
  bytes.remove_prefix(room(bytes.size(), capacity_));
  kept_.append(bytes);
  // Not at every call: moving the rest to the front costs as much as it is long.
  if (kept_.size() > 2 * capacity_) kept_.erase(0, kept_.size() - capacity_);
}

std::string_view RollingEnd::bytes() const {
  std::string_view end = kept_;
  end.remove_prefix(room(end.size(), capacity_));
  return end;
}

KeptOutput::KeptOutput(int file)
    : file_(file),
      head_room_(room(kKeptHead, size_of(file))),
      tail_room_(std::clamp(room(kKeptHead + kKeptTail, size_of(file) + head_room_), kLeastTail,
                            kKeptTail)),
      tail_(tail_room_),
      last_(kLastWords) {}

void KeptOutput::add(std::string_view bytes) {
  last_.add(bytes);
  const auto head = bytes.substr(0, head_room_);
  write_out(head);
  head_room_ -= head.size();
  bytes.remove_prefix(head.size());
  after_head_ += bytes.size();
  tail_.add(bytes);
}

void KeptOutput::finish() {
  const auto end = tail_.bytes();
  if (after_head_ > end.size())
    write_out(
        fmt::format("\n[{} bytes left out: a log keeps the beginning and the end, {} MiB each]\n",
                    after_head_ - end.size(), kKeptHead >> 20));
  write_out(end);
}

void KeptOutput::write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = TEMP_FAILURE_RETRY(write(file_, bytes.data(), bytes.size()));
    if (written <= 0) {
      error_ = written < 0 ? errno : EIO;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

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
    const ssize_t count = TEMP_FAILURE_RETRY(read(pipe_, chunk, sizeof chunk));
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
