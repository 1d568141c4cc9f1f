#include "worker/progress.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/bounded_text.h"

namespace peakbench::worker {
namespace {

int open_descriptor() {
  const char* text = std::getenv("PEAKBENCH_PROGRESS_FD");
  if (text == nullptr) return -1;
  std::signal(SIGPIPE, SIG_IGN);
  return std::atoi(text);
}

constexpr std::size_t kLongestReason = 600;  // however it is escaped, a pipe takes the line whole
constexpr int kPatienceMs = 1000;

int& the_descriptor() {
  static int descriptor = open_descriptor();
  return descriptor;
}

// Waits while the pipe is full, or drops the line: progress is not worth waiting.
void write_line(std::string_view line, int patience_ms = 0) {
  int& descriptor = the_descriptor();
  if (descriptor < 0) return;
  pollfd room{descriptor, POLLOUT, 0};
  if (patience_ms > 0) ::poll(&room, 1, patience_ms);
  if (::write(descriptor, line.data(), line.size()) < 0 && errno != EAGAIN) descriptor = -1;
}

}  // namespace

int progress_descriptor() { return the_descriptor(); }

void report(const result::Progress& progress) {
  write_line(result::to_json(progress).dump() + "\n");
}

void report_host_failure(const std::string& reason) {
  const nlohmann::json line{{result::kHostFailureKey, bounded(reason, kLongestReason)}};
  write_line(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
             kPatienceMs);
}

void report_host_failure_without_memory() {
  write_line("{\"host_failure\": \"the machine gave no memory; free some\"}\n", kPatienceMs);
}

}  // namespace peakbench::worker
