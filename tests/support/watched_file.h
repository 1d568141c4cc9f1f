// Whether a file is opened, by whoever it is.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

namespace peakbench::testing {

class WatchedFile {
 public:
  explicit WatchedFile(const std::string& path) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (events_ < 0 || inotify_add_watch(events_, path.c_str(), IN_OPEN) < 0)
      throw std::runtime_error("cannot watch " + path);
  }
  WatchedFile(const WatchedFile&) = delete;
  WatchedFile& operator=(const WatchedFile&) = delete;
  ~WatchedFile() { close(events_); }

  // Since it was watched or last asked; at most a few hundred times.
  bool was_opened() {
    std::array<char, 1 << 14> events{};
    return read(events_, events.data(), events.size()) > 0;
  }

 private:
  int events_;
};

}  // namespace peakbench::testing
