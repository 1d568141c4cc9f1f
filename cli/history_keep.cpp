// `peakbench history accept`, `prune`, `export` and `check`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/history_command.h"
#include "cli/option_values.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/trends/keep.h"
#include "reports/trends/text.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct AcceptArguments {
  HistoryPlace place;
  std::int64_t number = 0;
  std::string note;
};

struct PruneArguments {
  HistoryPlace place;
  std::int64_t keep = -1;
  std::string older_than, branch;
  std::vector<std::int64_t> runs;
  bool dry_run = false, json = false;
};

struct HistoryExportArguments {
  HistoryPlace place;
  trends::Filter filter;
  std::string format = "jsonl", out;
};

int accept(World& world, const AcceptArguments& arguments) {
  auto history = arguments.place.to_write();
  history.set_verdict(arguments.number, "accepted", arguments.note);
  world.out << fmt::format("run {} is accepted: later runs are compared with it\n",
                           arguments.number);
  return kDone;
}

std::vector<trends::RunRow> chosen(const trends::History& history,
                                   const PruneArguments& arguments) {
  if (!arguments.runs.empty()) {
    std::vector<trends::RunRow> runs;
    for (const auto number : arguments.runs) runs.push_back(history.run(number));
    return runs;
  }
  trends::PruneRules rules;
  if (arguments.keep >= 0) rules.keep = arguments.keep;
  if (!arguments.older_than.empty())
    rules.older_than = trends::moment_before(arguments.older_than, std::time(nullptr));
  rules.branch = arguments.branch;
  if (!rules.keep && !rules.older_than)
    throw ConfigError(
        "name the runs to remove: --keep N, --older-than AGE, or --run NUMBER; --dry-run shows "
        "them first");
  return trends::to_prune(history.runs({}), rules);
}

int prune(World& world, const PruneArguments& arguments) {
  auto history = arguments.dry_run ? arguments.place.to_read() : arguments.place.to_write();
  const auto going = chosen(history, arguments);
  std::vector<std::int64_t> numbers;
  std::int64_t bytes = 0;
  for (const auto& run : going) {
    numbers.push_back(run.number);
    bytes += run.stored_bytes;
  }
  // Counted before: what is removed is removed, even where the disk then refuses to be read.
  const auto all = history.numbers().size();
  if (!arguments.dry_run && !numbers.empty()) history.remove(numbers);
  if (arguments.json) {
    world.out << json_text(Json{{"dry_run", arguments.dry_run}, {"runs", numbers}});
    return kDone;
  }
  if (!going.empty() && arguments.dry_run) world.out << trends::runs_table(going, world.out_width);
  world.out << fmt::format(
      "{} of {} runs {}\n", numbers.size(), all,
      arguments.dry_run ? fmt::format("would go ({} bytes)", reports::grouped(bytes)) : "removed");
  return kDone;
}

// What can be listed: where a page is damaged, run by run. `damaged`: numbers of the others.
std::vector<trends::RunRow> runs_to_export(const trends::History& history,
                                           const trends::Filter& filter,
                                           std::vector<std::string>& damaged) {
  try {
    return history.runs(filter);
  } catch (const ConfigError&) {
    std::vector<trends::RunRow> runs;
    const auto numbers = history.numbers();
    if (numbers.empty()) throw;
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      try {
        auto one = filter;
        one.number = *number;
        for (auto& run : history.runs(one)) runs.push_back(std::move(run));
      } catch (const ConfigError&) {
        damaged.push_back(std::to_string(*number));
      }
    }
    return runs;
  }
}

// Numbers of runs that could not be read.
std::vector<std::string> export_lines(const trends::History& history,
                                      const std::vector<trends::RunRow>& runs, std::ostream& out) {
  std::vector<std::string> damaged;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    try {
      out << trends::line_of(history, *run) << "\n";
    } catch (const ConfigError&) {
      damaged.push_back(std::to_string(run->number));
    }
  }
  return damaged;
}

[[noreturn]] void in_the_way(const fs::path& path) {
  throw ConfigError(fmt::format(
      "{}: is in the way: it is not of this run. Nothing was replaced; move it, or name "
      "another folder with --out",
      path.string()));
}

bool holds(const fs::path& file, const records::Run& record) {
  try {
    return to_json(records::read_run(file.string())) == to_json(record);
  } catch (const RunFileError&) {
    return false;
  }
}

bool holds(const fs::path& file, const trends::RunRow& run) {
  try {
    const auto json = files::read_json_file(file.string());
    return Fields(json).get<std::int64_t>("number") == run.number;
  } catch (const RunFileError&) {
    return false;
  }
}

// An earlier export of the same run is replaced: its labels may have changed.
void export_folder(const fs::path& folder, const records::Run& record, const trends::RunRow& run) {
  const auto run_file = folder / "run.json", labels_file = folder / "history.json";
  if (files::is_there(run_file.string()) && !holds(run_file, record)) in_the_way(run_file);
  if (files::is_there(labels_file.string()) && !holds(labels_file, run)) in_the_way(labels_file);
  files::make_folder(folder.string());
  records::write_run(record, folder.string());
  files::write_json_file(labels_file.string(), trends::to_json(run));
}

std::vector<std::string> export_folders(const trends::History& history,
                                        const std::vector<trends::RunRow>& runs,
                                        const std::string& out) {
  std::vector<std::string> damaged;
  for (const auto& run : runs) {
    std::optional<records::Run> record;
    try {
      record = history.record(run.number);
    } catch (const ConfigError&) {
      damaged.push_back(std::to_string(run.number));
      continue;
    }
    export_folder(
        fs::path(out) / fmt::format("{:06}-{}", run.number, reports::file_stem(run.created)),
        *record, run);
  }
  return damaged;
}

int export_runs(World& world, const HistoryExportArguments& arguments) {
  const auto history = arguments.place.to_read();
  std::vector<std::string> unlisted, damaged;
  const auto runs = runs_to_export(history, arguments.filter, unlisted);
  if (arguments.format == "folders") {
    if (arguments.out.empty()) throw ConfigError("--format folders needs --out DIR");
    damaged = export_folders(history, runs, arguments.out);
  } else if (arguments.out.empty() || arguments.out == "-") {
    damaged = export_lines(history, runs, world.out);
  } else {
    std::ostringstream lines;
    damaged = export_lines(history, runs, lines);
    files::write_file_atomically(arguments.out, lines.str());
  }
  world.err << fmt::format("{} runs exported\n", runs.size() - damaged.size());
  damaged.insert(damaged.end(), unlisted.begin(), unlisted.end());
  if (damaged.empty()) return kDone;
  throw ConfigError(fmt::format("{}: {} of {} runs are damaged and were left out: {}",
                                history.path(), damaged.size(), runs.size() + unlisted.size(),
                                fmt::join(damaged, ", ")));
}

// The first of them, and how many more there are.
std::string first_of(const std::vector<std::string>& problems) {
  constexpr std::size_t kMost = 20;
  const auto shown = std::min(problems.size(), kMost);
  auto text = fmt::format(
      "{}",
      fmt::join(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < problems.size()) text += fmt::format("; and {} more", problems.size() - shown);
  return text;
}

int check(World& world, const HistoryPlace& place) {
  const auto history = place.to_read();
  const auto problems = history.problems();
  if (problems.empty()) {
    world.out << fmt::format("{}: sound, {} runs\n", history.path(), history.runs({}).size());
    return kDone;
  }
  throw ConfigError(fmt::format(
      "{}: damaged: {}. `peakbench history export --out saved.jsonl` saves what can be read; "
      "`peakbench history add saved.jsonl --history NEW` makes a new history from it",
      history.path(), first_of(problems)));
}

}  // namespace

Command add_history_accept(CLI::App& parent, World& world) {
  auto* command =
      parent.add_subcommand("accept", "Accept a run's change: later runs are compared with it");
  const auto arguments = std::make_shared<AcceptArguments>();
  add_value(*command, "number", arguments->number, "Number of the run", "RUN")
      ->required()
      ->check(whole_number(1));
  add_history_options(*command, arguments->place);
  add_value(*command, "--note", arguments->note, "Reason, stored with the run", "TEXT");
  return [&world, arguments] { return accept(world, *arguments); };
}

Command add_history_prune(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand(
      "prune", "Remove old runs; the newest and the newest good run are kept");
  const auto arguments = std::make_shared<PruneArguments>();
  add_history_options(*command, arguments->place);
  add_number(*command, "--keep", arguments->keep,
             "Number of newest runs to keep for each branch and suite", 0, 1'000'000'000);
  add_value(*command, "--older-than", arguments->older_than,
            "Remove runs older than this: 90d, 12w, 2y, or a date like 2026-01-31", "AGE");
  add_value(*command, "--branch", arguments->branch, "Only runs of this branch", "NAME");
  add_value(*command, "--run", arguments->runs,
            "Remove this run, by its number, even if it would be kept (can be repeated)", "RUN")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", arguments->dry_run, "Show the runs and remove nothing");
  command->add_flag("--json", arguments->json, "Print JSON");
  return [&world, arguments] { return prune(world, *arguments); };
}

Command add_history_export(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand("export", "Export runs as lines of JSON or as run folders");
  const auto arguments = std::make_shared<HistoryExportArguments>();
  add_history_options(*command, arguments->place);
  add_value(*command, "--branch", arguments->filter.branch, "Only runs of this branch", "NAME");
  add_value(*command, "--suite", arguments->filter.suite, "Only runs of this suite", "NAME");
  command->add_option("-f,--format", arguments->format, "Output format: jsonl or folders")
      ->check(one_of({"jsonl", "folders"}))
      ->capture_default_str();
  add_value(*command, "-o,--out", arguments->out,
            "Output file (default: standard output), or folder", "PATH");
  return [&world, arguments] { return export_runs(world, *arguments); };
}

Command add_history_check(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand("check", "Check the whole file for damage");
  const auto place = std::make_shared<HistoryPlace>();
  add_history_options(*command, *place);
  return [&world, place] { return check(world, *place); };
}

}  // namespace peakbench::cli
