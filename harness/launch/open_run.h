// The record that a run begins with: a new one, or that of the folder's run to be continued.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "result/run.h"

namespace peakbench::launch {

class RunFolder;

struct OpenOptions {
  bool resume = false;       // keep the cases that the folder's run has ended
  bool overwrite = false;    // delete the folder's run first
  bool is_resumable = true;  // whoever asks has --resume
  std::vector<std::string> command;
};

// Throws ConfigError when the folder holds a run (without resume and overwrite), another run than
// this plan's (with resume), or files of somebody else's; RunFileError when its run.json cannot be
// read.
result::Run open_run(const plan::Plan& plan, const RunFolder& folder, const OpenOptions& options);

}  // namespace peakbench::launch
