#include "cli/ask_worker.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "launch/outcome.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

// A file of its own in the temporary folder, gone at the end.
class TemporaryLog {
 public:
  TemporaryLog() : path_(fs::temp_directory_path() / "peakbench-doctor-XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
  }
  ~TemporaryLog() { unlink(path_.c_str()); }
  TemporaryLog(const TemporaryLog&) = delete;
  TemporaryLog& operator=(const TemporaryLog&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

WorkerSaid ask_worker(const std::string& worker, const std::vector<std::string>& arguments,
                      const launch::Environment& environment) {
  const TemporaryLog log;
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
  said.end =
      launch::printable(end.start_error.empty() ? launch::log_tail(log.path()) : end.start_error);
  said.wall_ns = end.wall_ns;
  return said;
}

}  // namespace peakbench::cli
