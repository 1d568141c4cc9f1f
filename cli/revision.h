// What a run is of: its commit and branch, from where they can be known.
#pragma once

#include <string>

#include "result/run.h"

namespace peakbench::cli {

struct Revision {
  std::string commit, branch;  // empty where unknown
};

// What continuous integration says (GitHub, GitLab, Jenkins, Buildkite), else what the run itself
// recorded, else git in the working folder. A pull request's branch is its head's.
Revision revision_of(const result::Run& run);

}  // namespace peakbench::cli
