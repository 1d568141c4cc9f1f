#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/incoming.h"
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

// Cases in the order in which the parts name them; one that a part has measured is no other's to
// measure. Pure. Throws ConfigError that says what differs: settings, device options, the build
// of Peakbench or of a plugin, the reference; or which case two parts have measured, or which two
// cases have one slug.
records::Run merged(const std::vector<PartialRun>& parts);

struct Merge {
  records::Run run;
  // Paths: traces that a part's run.json names, and its folder lacks. The run names them as it did.
  std::vector<std::string> absent_traces;
};

// Reads, merges, and writes the run with its traces and logs; nullopt where `cancelled`, which is
// asked meanwhile, said so. All of it is there then or none of it, also where it throws: what
// merged() does, ConfigError where `out` holds something already or a file of a part cannot be
// copied (a link, a pipe, not readable), HostError. Of one that is killed, the next RunFolder of
// that folder takes away what is there.
std::optional<Merge> merge_into(const launch::RunFolder& out,
                                const std::vector<std::string>& folders,
                                const std::vector<std::string>& command,
                                const std::function<bool()>& cancelled);

// A case says itself where its machine differs from its run's.
void note_machine(records::CaseResult& one, const nlohmann::json& machine,
                  const nlohmann::json& run);

}  // namespace peakbench::cluster
