#include "host/process_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "base/file.h"

namespace peakbench::process {
namespace {

using Clock = TreeMemory::Clock;

constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kBetweenSearches = std::chrono::milliseconds(500);
constexpr int kShareOfTime = 100;

// The start of a file of /proc; empty where its process has ended, which may happen between open
// and read. (A stream throws then.)
std::string start_of(const std::string& path) {
  std::array<char, 256> text{};
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  const ssize_t count = read(file, text.data(), text.size());
  close(file);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

// From /proc/PID/stat: "PID (NAME) STATE PARENT ...", where NAME may hold anything.
pid_t parent_of(pid_t pid) {
  const auto text = start_of(fmt::format("/proc/{}/stat", pid));
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return std::atoi(text.c_str() + name_end + 4);
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  for (const auto& name : files::names_in("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    const pid_t pid = std::atoi(name.c_str());
    children.emplace(parent_of(pid), pid);
  }
  return children;
}

std::int64_t resident_bytes(pid_t pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Resident pages, each divided among those that share it. Slow for a large process.
std::int64_t proportional_bytes(pid_t pid) {
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
  for (std::string word; rollup >> word;) {
    std::int64_t kib = 0;
    if (word == "Pss:" && rollup >> kib) return kib * 1024;
  }
  return resident_bytes(pid);
}

template <class Count>
std::int64_t sum(const std::vector<pid_t>& all, Count count) {
  std::int64_t bytes = 0;
  for (const pid_t pid : all) bytes += count(pid);
  return bytes;
}

// Those that have ended; false: there is no child left.
bool reap() {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno != EINTR) return false;
  }
}

}  // namespace

std::vector<pid_t> descendants_of(pid_t ancestor) {
  const auto children = children_by_parent();
  std::vector<pid_t> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const auto [begin, end] = children.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
    // A number that is used again while /proc is read could make a ring.
    if (found.size() > children.size()) break;
  }
  return found;
}

bool TreeMemory::over(Clock::time_point now) {
  if (limit_ <= 0 || now - looked_ < kBetweenLooks) return false;
  looked_ = now;
  look_for_more(now);
  if (sum(all_, resident_bytes) <= limit_) return false;
  if (all_.size() == 1) return true;
  if (now - counted_ < kBetweenSearches) return false;
  counted_ = now;
  return sum(all_, proportional_bytes) > limit_;
}

void TreeMemory::look_for_more(Clock::time_point now) {
  if (now - searched_ < between_searches_) return;
  searched_ = now;
  all_ = descendants_of(getpid());
  between_searches_ =
      std::max<Clock::duration>(kBetweenSearches, kShareOfTime * (Clock::now() - now));
}

int end_descendants(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  auto pause = std::chrono::milliseconds(1);
  while (reap()) {
    const auto left = descendants_of(getpid());
    if (Clock::now() > deadline) return static_cast<int>(left.size());
    for (const pid_t pid : left) kill(pid, SIGKILL);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(20));
  }
  return 0;
}

}  // namespace peakbench::process
