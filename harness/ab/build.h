// One of two builds that are timed in turn: its worker, its plugins, and what is timed of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/runner.h"
#include "plan/plan.h"

namespace peakbench::ab {

struct BuildOrder {
  std::string folder;                     // an installation or a build folder
  std::vector<manifest::Folder> plugins;  // beside its own
  plan::Request request;                  // one device
};

struct Build {
  plan::Plan plan;
  std::unique_ptr<launch::Runner> runner;
};

// `left_out` is told of each plugin that cannot be used, with the reason. Throws ConfigError: no
// build, an emulated card (which has no times), a case that is decided already, and whatever
// plan::make_plan() does.
Build open_build(const BuildOrder& order, const std::function<void(const std::string&)>& left_out);

// Cases are paired by their places. Throws ConfigError where these differ in more than the
// strategies.
void check_pairs(const std::vector<plan::PlannedCase>& base,
                 const std::vector<plan::PlannedCase>& now);

}  // namespace peakbench::ab
