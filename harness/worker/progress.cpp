#include "worker/progress.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

namespace peakbench::worker {
namespace {

int open_descriptor() {
  const char* text = std::getenv("PEAKBENCH_PROGRESS_FD");
  if (text == nullptr) return -1;
  std::signal(SIGPIPE, SIG_IGN);
  return std::atoi(text);
}

void write_line(std::string_view line) {
  static int descriptor = open_descriptor();
  if (descriptor < 0) return;
  if (::write(descriptor, line.data(), line.size()) < 0) descriptor = -1;
}

}  // namespace

void report(const result::Progress& progress) {
  write_line(result::to_json(progress).dump() + "\n");
}

void report_host_failure(const std::string& reason) {
  const nlohmann::json line{{result::kHostFailureKey, reason}};
  write_line(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void report_host_failure_without_memory() {
  write_line("{\"host_failure\": \"the machine gave no memory; free some\"}\n");
}

}  // namespace peakbench::worker
