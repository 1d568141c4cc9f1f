// Commands that take minutes, and the folder in which they make something.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "host/process.h"

namespace peakbench::launch {

// Receives sentences, and every few milliseconds the last line of the output ("[12/107] Building
// ..."). `cancelled` is asked as often.
struct BuildListener {
  std::function<void(const std::string&)> say;
  std::function<void(const std::string&)> progress;
  std::function<bool()> cancelled;
};

struct LoggedCommand {
  std::vector<std::string> arguments;
  process::Environment environment;
  std::string log;            // file that what it says is appended to
  std::string how_it_failed;  // "the worker for PyTorch 2.11.0 could not be built"
};

// False: cancelled. Throws ConfigError where it ends with anything but 0, with its last lines and
// where the others are.
bool run_logged(const LoggedCommand& command, const BuildListener& listener);

// A folder in `cache`, gone with the object, whatever was made there and not moved elsewhere; and
// what a killed process left. For who holds the cache's lock.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(const std::filesystem::path& cache);
  ~UnfinishedFolder();
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// For everything below the folder: other users must not be able to write what is loaded from a
// cache.
void close_to_others(const std::filesystem::path& folder);

}  // namespace peakbench::launch
