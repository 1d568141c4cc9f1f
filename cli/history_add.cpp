// `peakbench history add`: files runs, and lines of another history.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/history_command.h"
#include "cli/revision.h"
#include "errors/errors.h"
#include "json/json_text.h"
#include "reports/history/export.h"
#include "result/run_paths.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using history::Added;
using history::History;
using history::Labels;

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

Added add_run_folder(World& world, History& history, const std::string& path, Labels labels) {
  const auto run = result::read_run(path);
  const auto revision = revision_of(run);
  if (labels.commit.empty()) labels.commit = revision.commit;
  if (labels.branch.empty()) labels.branch = revision.branch;
  std::vector<std::string> notes;
  const auto parts = analysis::parts_of_run(run, result::run_folder_of(path), &notes);
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
      const auto line = history::read_line(text);
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
    if (fs::path(path).extension() == ".jsonl") {
      add_lines(world, arguments, history, path, all);
      continue;
    }
    tell(world, arguments, path, add_run_folder(world, history, path, arguments.labels), all);
  }
  if (arguments.json) world.out << json_text(all);
  return kDone;
}

}  // namespace

Command add_history_add(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand("add", "Add runs under their commit and branch");
  command->footer(kHistoryAddFooter);
  const auto arguments = std::make_shared<AddArguments>();
  command
      ->add_option("runs", arguments->runs, "Run folders, their run.json, or exported .jsonl files")
      ->required()
      ->type_name("RUN...");
  add_history_options(*command, arguments->place);
  command->add_option("--branch", arguments->labels.branch, "Branch of the runs")
      ->type_name("NAME");
  command->add_option("--commit", arguments->labels.commit, "Commit of the runs")->type_name("ID");
  command
      ->add_option("--verdict", arguments->labels.verdict,
                   "Result of the gate: passed, regressed, failed, unknown, accepted")
      ->type_name("WORD");
  command->add_option("--note", arguments->labels.note, "Note to store with the run")
      ->type_name("TEXT");
  command->add_flag("--json", arguments->json, "Print JSON");
  return [&world, arguments] { return add(world, *arguments); };
}

}  // namespace peakbench::cli
