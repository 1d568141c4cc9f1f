// The folder of a run: made, checked, and ours alone while a run goes on.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::launch {

// Makes the folder and holds it until the end of its life. Throws ConfigError: cannot be made or
// written, in use.
class RunFolder {
 public:
  explicit RunFolder(std::string path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  bool holds_run() const;
  // Deletes what a run leaves in a folder, and nothing else.
  void clear() const;

 private:
  std::string path_;
  int lock_ = -1;
};

// Settings that make two runs one: a resumed run must have the same.
nlohmann::json settings_of(const plan::Request& request);

// The run in the folder, to be continued with this plan. Throws ConfigError that says what differs.
result::Run read_matching_run(const std::string& path, const plan::Plan& plan);

}  // namespace peakbench::launch
