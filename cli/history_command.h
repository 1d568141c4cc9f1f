#pragma once

#include <string>

#include "cli/commands.h"
#include "records/run.h"
#include "reports/trends/history.h"

namespace peakbench::cli {

// The parts of `peakbench history`, each in a source of its own.

// What every part takes.
struct HistoryPlace {
  std::string file;
  double wait_s = 30;

  trends::History to_read() const;
  trends::History to_write() const;
};
void add_history_options(CLI::App& command, HistoryPlace& place);

Command add_history_add(CLI::App& parent, World& world);
Command add_history_list(CLI::App& parent, World& world);
Command add_history_show(CLI::App& parent, World& world);
Command add_history_trend(CLI::App& parent, World& world);
Command add_history_accept(CLI::App& parent, World& world);
Command add_history_prune(CLI::App& parent, World& world);
Command add_history_export(CLI::App& parent, World& world);
Command add_history_check(CLI::App& parent, World& world);

// What a run is of: its commit and branch, from where they can be known.

struct Revision {
  std::string commit, branch;  // empty where unknown
};

// What continuous integration says (GitHub, GitLab, Jenkins, Buildkite), else what the run itself
// recorded, else git in the working folder. A pull request's branch is its head's.
Revision revision_of(const records::Run& run);

}  // namespace peakbench::cli
