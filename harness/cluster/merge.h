#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/run_folder.h"
#include "records/case.h"
#include "records/run.h"

namespace peakbench::cluster {

// Runs made apart, as one: of a suite that was divided by hand, on machines that share no folder.

// A run, and the folder that it was read from.
struct PartialRun {
  std::string folder;
  records::Run run;
};

// Joins parts of a run, with cases in the order of the parts. Each case may be measured by only one
// part. Pure. Throws ConfigError that names the difference: settings, device options, the build of
// Peakbench or of a plugin, the reference; or a case measured twice, or two cases with one slug.
records::Run merged(const std::vector<PartialRun>& parts);

struct Merge {
  records::Run run;
  // Paths: traces that a part's run.json names, and its folder lacks. The run names them as it did.
  std::vector<std::string> absent_traces;
};

// Reads and merges the parts, and writes the run with its traces and logs, atomically. Nullopt if
// `cancelled` returned true meanwhile. Throws what merged() does; ConfigError if `out` is not empty
// or a part's file cannot be copied (a link, a pipe, not readable); HostError. After a kill, the
// next RunFolder of that folder deletes what is there.
std::optional<Merge> merge_into(const launch::RunFolder& out,
                                const std::vector<std::string>& folders,
                                const std::vector<std::string>& command,
                                const std::function<bool()>& cancelled);

// A case says itself where its machine differs from its run's.
void note_machine(records::CaseResult& one, const nlohmann::json& machine,
                  const nlohmann::json& run);

}  // namespace peakbench::cluster
