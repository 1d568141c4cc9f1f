#include "cli/ask_worker.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "launch/outcome.h"
#include "result/errors.h"
#include "result/printable.h"

namespace peakbench::cli {
namespace {

// A file of its own in memory: doctor is for machines where other places may be missing.
class MemoryLog {
 public:
  MemoryLog() : descriptor_(memfd_create("peakbench-doctor", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw ConfigError(
          fmt::format("cannot make a file in memory for what the worker says: {}; free some memory "
                      "or descriptors (ulimit -n)",
                      std::strerror(errno)));
  }
  ~MemoryLog() { close(descriptor_); }
  MemoryLog(const MemoryLog&) = delete;
  MemoryLog& operator=(const MemoryLog&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const launch::Environment& environment) {
  const MemoryLog log;
  launch::ProcessSpec spec;
  spec.arguments = {worker};
  spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
  spec.environment = environment;
  spec.log_path = log.path();
  spec.timeout = std::chrono::seconds(60);
  const auto end = launch::run_process(
      spec, [](const std::string&) {}, [] { return false; });
  std::ifstream file(log.path());
  WorkerSaid said;
  said.text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  said.end = printable(end.start_error.empty() ? launch::log_tail(said.text) : end.start_error);
  said.wall_ns = end.wall_ns;
  return said;
}

}  // namespace peakbench::cli
