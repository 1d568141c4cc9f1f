// `peakbench history`: runs over time. No torch, no plugins.
#include "cli/history_command.h"

#include "errors/errors.h"
#include "reports/history/source.h"

namespace peakbench::cli {
namespace {

constexpr const char* kHistoryFooter = R"(Examples:
  peakbench history add results/nightly --branch main --commit 3f9c2d1
  peakbench history list --branch main --last 20
  peakbench history show 12
  peakbench history trend
  peakbench history trend 'vit-l-16/baseline/*' --metric requested
  peakbench history accept 12 --note "the new loss head needs one more buffer"
  peakbench history prune --keep 365 --older-than 2y --dry-run
  peakbench history export --out history.jsonl
The history is one file: --history, else $PEAKBENCH_HISTORY, else peakbench-history.sqlite in this folder
(docs/how-to/history.md has example queries in SQL).
Exit codes: 0 done; 2 the file or a run cannot be used.)";

}  // namespace

history::History HistoryPlace::to_read() const {
  return history::History::open_to_read(history::history_file(file),
                                        static_cast<int>(wait_s * 1000));
}

history::History HistoryPlace::to_write() const {
  return history::History::open_to_write(history::history_file(file),
                                         static_cast<int>(wait_s * 1000));
}

void add_history_options(CLI::App& command, HistoryPlace& place) {
  command
      .add_option(
          "--history", place.file,
          "File of the history (default: $PEAKBENCH_HISTORY, else ./peakbench-history.sqlite)")
      ->type_name("FILE");
  command
      .add_option("--wait", place.wait_s,
                  "Time to wait while another program writes to the history, in seconds")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
}

Command add_history(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("history", "Record runs over time and show trends");
  command->footer(kHistoryFooter);
  command->require_subcommand(0, 1);
  const std::vector<std::pair<std::string, Command>> parts{
      {"add", add_history_add(*command, world)},
      {"list", add_history_list(*command, world)},
      {"show", add_history_show(*command, world)},
      {"trend", add_history_trend(*command, world)},
      {"accept", add_history_accept(*command, world)},
      {"prune", add_history_prune(*command, world)},
      {"export", add_history_export(*command, world)},
      {"check", add_history_check(*command, world)}};
  return [command, parts]() -> int {
    for (const auto& [name, part] : parts)
      if (command->got_subcommand(name)) return part();
    throw ConfigError(
        "history needs a command: add, list, show, trend, accept, prune, export or check; see "
        "`peakbench history --help`");
  };
}

}  // namespace peakbench::cli
