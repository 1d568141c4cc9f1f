// The parts of `peakbench history`, each in a source of its own.
#pragma once

#include <string>

#include "cli/commands.h"
#include "reports/trends/history.h"

namespace peakbench::cli {

// What every part takes.
struct HistoryPlace {
  std::string file;
  double wait_s = 30;

  trends::History to_read() const;
  trends::History to_write() const;
};
void add_history_options(CLI::App& command, HistoryPlace& place);

Command add_history_list(CLI::App& parent, World& world);
Command add_history_show(CLI::App& parent, World& world);
Command add_history_trend(CLI::App& parent, World& world);
Command add_history_accept(CLI::App& parent, World& world);
Command add_history_prune(CLI::App& parent, World& world);
Command add_history_export(CLI::App& parent, World& world);
Command add_history_check(CLI::App& parent, World& world);

}  // namespace peakbench::cli
