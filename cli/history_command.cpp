// `peakbench history`, its part `add`, and `peakbench publish`: runs over time. No torch, no
// plugins.
#include "cli/history_command.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "cli/option_values.h"
#include "host/command.h"
#include "records/run_files.h"
#include "reports/trends/keep.h"
#include "reports/trends/publish.h"
#include "reports/trends/source.h"
#include "reports/trends/text.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using trends::Added;
using trends::History;
using trends::Labels;

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

constexpr const char* kHistoryAddFooter = R"(Examples:
  peakbench history add results/nightly
  peakbench history add results/nightly --branch main --commit 3f9c2d1 --verdict passed
  peakbench history add saved.jsonl  # from `peakbench history export`

Without --commit and --branch, they come from the variables of continuous integration (GITHUB_SHA,
GITHUB_HEAD_REF, GITHUB_REF_NAME, CI_COMMIT_SHA, ...), else from the run, else from git in this folder.
Adding a run twice stores it once. The allocations at each phase's peak are stored if the run's traces
exist; the traces themselves are not.
Exit codes: 0 done; 2 a run cannot be read or the history cannot be written: the runs before it are added,
that run and those after it are not.)";

struct AddArguments {
  HistoryPlace place;
  std::vector<std::string> runs;
  Labels labels;
  bool json = false;
};

void tell(World& world, const AddArguments& arguments, const std::string& what, const Added& added,
          nlohmann::ordered_json& all) {
  if (arguments.json) {
    all.push_back({{"source", what},
                   {"number", added.number},
                   {"added", added.is_new},
                   {"note", added.note}});
    return;
  }
  world.out << (added.is_new ? fmt::format("{}: run {}\n", what, added.number)
                             : fmt::format("{}: already there as run {}; nothing was added\n", what,
                                           added.number));
  if (!added.note.empty()) world.err << "note: " << added.note << "\n";
}

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return "";
}

// The first line that a command prints; empty where it fails.
std::string line_of(const std::vector<std::string>& command) {
  constexpr auto kPatience = std::chrono::seconds(20);
  const auto said = process::ask_command({.arguments = command, .patience = kPatience});
  if (!said.ok()) return "";
  std::string line = said.out.substr(0, said.out.find('\n'));
  line.erase(line.find_last_not_of(" \r\n") + 1);
  return line;
}

std::string recorded_commit(const records::Run& run) {
  const auto found = run.environment.find("commit");
  if (found == run.environment.end() || !found->is_string()) return "";
  const auto commit = found->get<std::string>();
  return commit == "unknown" ? "" : commit;
}

// Fills in what nobody typed: what continuous integration says (GitHub, GitLab, Jenkins,
// Buildkite), else what the run itself recorded, else git in the working folder. A pull request's
// branch is its head's.
void complete(Labels& labels, const records::Run& run) {
  if (labels.commit.empty())
    labels.commit =
        first_variable({"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT"});
  if (labels.commit.empty()) labels.commit = recorded_commit(run);
  if (labels.commit.empty()) labels.commit = line_of({"git", "rev-parse", "HEAD"});
  if (labels.branch.empty())
    labels.branch = first_variable({"GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME",
                                    "GIT_BRANCH", "BUILDKITE_BRANCH"});
  if (labels.branch.empty())
    labels.branch = line_of({"git", "symbolic-ref", "--quiet", "--short", "HEAD"});
}

Added add_run_folder(World& world, History& history, const std::string& path, Labels labels) {
  const auto run = records::read_run(path);
  complete(labels, run);
  std::vector<std::string> notes;
  const auto parts = analysis::parts_of_run(run, records::run_folder_of(path), &notes);
  for (const auto& note : notes) world.err << "note: " << note << "\n";
  return history.add(run, parts, labels);
}

Labels joined(const Labels& asked, Labels own) {
  if (!asked.branch.empty()) own.branch = asked.branch;
  if (!asked.commit.empty()) own.commit = asked.commit;
  if (!asked.verdict.empty()) own.verdict = asked.verdict;
  if (!asked.note.empty()) own.note = asked.note;
  return own;
}

void add_lines(World& world, const AddArguments& arguments, History& history,
               const std::string& path, nlohmann::ordered_json& all) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    throw ConfigError(fmt::format("{}: expected a regular file", path));
  std::ifstream file(path);
  if (!file) throw ConfigError(fmt::format("{}: cannot be read", path));
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty()) continue;
    const auto where = fmt::format("{}:{}", path, number);
    try {
      const auto line = trends::read_line(text);
      tell(world, arguments, where,
           history.add(line.run, line.parts, joined(arguments.labels, line.labels)), all);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}", where, error.what()));
    }
  }
}

int add(World& world, const AddArguments& arguments) {
  auto history = arguments.place.to_write();
  auto all = nlohmann::ordered_json::array();
  for (const auto& path : arguments.runs) {
    if (fs::path(path).extension() == ".jsonl")
      add_lines(world, arguments, history, path, all);
    else
      tell(world, arguments, path, add_run_folder(world, history, path, arguments.labels), all);
  }
  if (arguments.json) world.out << json_text(all);
  return kDone;
}

Command add_add(CLI::App& parent, World& world) {
  auto* command =
      subcommand(parent, "add", "Add runs under their commit and branch", kHistoryAddFooter);
  const auto arguments = std::make_shared<AddArguments>();
  add_value(*command, "runs", arguments->runs,
            "Run folders, their run.json, or exported .jsonl files", "RUN...")
      ->required();
  add_history_options(*command, arguments->place);
  add_value(*command, "--branch", arguments->labels.branch, "Branch of the runs", "NAME");
  add_value(*command, "--commit", arguments->labels.commit, "Commit of the runs", "ID");
  add_value(*command, "--verdict", arguments->labels.verdict,
            "Result of the gate: passed, regressed, failed, unknown, accepted", "WORD");
  add_value(*command, "--note", arguments->labels.note, "Note to store with the run", "TEXT");
  command->add_flag("--json", arguments->json, "Print JSON");
  return [&world, arguments] { return add(world, *arguments); };
}

constexpr const char* kPublishFooter = R"(Examples:
  peakbench publish --out site
  peakbench publish --history nightly.sqlite --branch main --title "Our models" --out public
The site has an index, a page per trend (a case on a card), the list of runs, reports of the newest runs
and the latest comparison. Links are relative, and nothing is loaded from a network. The same history gives
the same bytes, and unchanged files are not written again. Only files that an earlier publish wrote are
replaced or removed. Damaged runs are left out and listed.
Exit codes: 0 done; 2 the history cannot be read, the folder cannot be written, or a template is wrong.)";

struct PublishArguments {
  HistoryPlace place;
  trends::Options options;
};

int publish(World& world, PublishArguments& arguments) {
  arguments.options.builtin_template_directory = world.places.templates;
  const auto published = trends::publish(arguments.place.to_read(), arguments.options);
  for (const auto& [number, why] : published.left_out)
    world.err << trends::left_out_text(number, why);
  world.out << fmt::format("{}\n{} files written, {} as they were, {} removed\n", published.index,
                           published.written, published.unchanged, published.removed);
  return kDone;
}

}  // namespace

trends::History HistoryPlace::to_read() const {
  return trends::History::open_to_read(trends::history_file(file), static_cast<int>(wait_s * 1000));
}

trends::History HistoryPlace::to_write() const {
  return trends::History::open_to_write(trends::history_file(file),
                                        static_cast<int>(wait_s * 1000));
}

void add_history_options(CLI::App& command, HistoryPlace& place) {
  add_value(command, "--history", place.file,
            "File of the history (default: $PEAKBENCH_HISTORY, else ./peakbench-history.sqlite)",
            "FILE");
  add_value(command, "--wait", place.wait_s,
            "Time to wait while another program writes to the history, in seconds", "S")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
}

Command add_history(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "history", "Record runs over time and show trends", kHistoryFooter);
  command->require_subcommand(0, 1);
  const Commands parts{{"add", add_add(*command, world)},
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

Command add_publish(CLI::App& app, World& world) {
  auto* command = subcommand(app, "publish", "Write a static site of the history", kPublishFooter);
  const auto arguments = std::make_shared<PublishArguments>();
  auto& options = arguments->options;
  options.output_directory = "site";
  add_history_options(*command, arguments->place);
  add_value(*command, "-o,--out", options.output_directory, "Folder of the site", "DIR")
      ->capture_default_str();
  add_value(*command, "--branch", options.branch,
            "Branch to show (default: main, else the newest run's)", "NAME");
  add_value(*command, "--title", options.title, "Title of every page (default: Peakbench)", "TEXT");
  add_number(*command, "--reports", options.reports, "Number of newest runs that get a report", 0,
             1'000'000)
      ->capture_default_str();
  add_templates(*command, options.template_directory);
  return [&world, arguments] { return publish(world, *arguments); };
}

}  // namespace peakbench::cli
