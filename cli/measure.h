// A plan becomes a run in a folder, for `run` and the commands that measure as it does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "manifest/manifest.h"

namespace peakbench::cli {

// "results/TITLE-20261103T140500Z", for a run that nobody gave a folder; with "-2" after it where
// something has that name.
std::string folder_for(const std::string& title);
// The same, made: of several programs that start within a second, each has a folder of its own.
// Where none can be made, the name alone: RunFolder says why.
std::string make_folder_for(const std::string& title);

// Fills in `options.parameters` from the plugins, and `options.jobs` with the usable cores where
// `jobs` is empty.
void complete(launch::SessionOptions& options, const manifest::Found& plugins,
              std::optional<std::int64_t> jobs);

// With complete() options. Shows progress unless `quiet`. The runner is made before the folder:
// without a worker there is nothing to make one for.
result::Run measure(World& world, const plan::Plan& plan, const manifest::Found& plugins,
                    launch::Runner& runner, const launch::RunFolder& folder,
                    launch::SessionOptions options, std::optional<std::int64_t> jobs, bool quiet);

}  // namespace peakbench::cli
