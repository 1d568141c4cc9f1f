// Runs made apart, as one: of a suite that was divided by hand, on machines that share no folder.
#pragma once

#include <string>
#include <vector>

#include "launch/run_folder.h"
#include "result/run.h"

namespace peakbench::executor {

// A run, and the folder that it was read from.
struct PartialRun {
  std::string folder;
  result::Run run;
};

// Cases in the order in which the parts name them; one that a part has measured is no other's to
// measure. Pure. Throws ConfigError that says what differs: settings, device options, the build
// of Peakbench or of a plugin, the reference; or which case two parts have measured.
result::Run merged(const std::vector<PartialRun>& parts);

// Reads, merges, and writes the run with its traces and logs. Throws what merged() does, and
// ConfigError where `out` holds something already.
result::Run merge_into(const launch::RunFolder& out, const std::vector<std::string>& folders,
                       const std::vector<std::string>& command);

// A case says itself where its machine differs from its run's.
void note_machine(result::CaseResult& one, const nlohmann::json& machine,
                  const nlohmann::json& run);

}  // namespace peakbench::executor
