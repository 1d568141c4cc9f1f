// `peakbench trace`: any PyTorch program, with what fills its memory told by line, module and
// cause.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/emulate_command.h"
#include "cli/measure.h"
#include "cli/option_values.h"
#include "cli/program_words.h"
#include "cli/terminal.h"
#include "planning/plan.h"
#include "programs/trace_program.h"
#include "reports/analysis/peak_text.h"
#include "reports/analysis/rank_findings.h"
#include "reports/analysis/why.h"
#include "reports/run/report.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraceFooter = R"(Examples:
  peakbench trace --card rtx-4090-24gb -- python3 train.py
  peakbench trace --card h100-80gb,memory=24GiB --out results/oom -- python3 train.py --batch 8
  peakbench trace --card h100-80gb,count=2 -- torchrun --nproc-per-node 2 train.py
  peakbench trace --card h100-80gb --steps 2..4 -- python3 train.py
  peakbench trace -- python3 train.py
The program is not changed. With --card it runs on an emulated card (`peakbench list devices`), which needs
no GPU; without, on the devices of this machine. When it has ended, the peak is shown by category, line of
your code and cause. The run folder has the trace and a report; `report`, `compare`, `gate`, `history` and
`export` read it like any other run (docs/how-to/programs.md).
Exit code: the program's; 128 + N if signal N ended it; 2 no program was given.)";

struct TraceArguments {
  std::string card, out, name;
  std::optional<std::string> steps;
  std::vector<std::string> command;
  bool overwrite = false, needed = true, details = false;
  std::int64_t needed_timeout_s = 600;
  std::int64_t second_guesses = 0;
  emulator::ValuesRequest values;
};

// A folder for what the processes record, in the run's own: it may be large.
class JournalFolder {
 public:
  // `is_new`: the run's folder was not there before; it goes again where nothing comes of it.
  JournalFolder(const fs::path& run, bool is_new) : made_(is_new ? run : fs::path()) {
    try {
      fs::create_directories(run);
      folder_.emplace(run, ".trace.");
    } catch (const std::system_error& error) {
      throw ConfigError(
          fmt::format("--out {}: cannot be written: {}", run.string(), error.code().message()));
    }
  }
  JournalFolder(const JournalFolder&) = delete;
  JournalFolder& operator=(const JournalFolder&) = delete;
  ~JournalFolder() {
    folder_.reset();
    std::error_code ignored;
    if (!made_.empty()) fs::remove(made_, ignored);
  }
  const fs::path& path() const { return folder_->path(); }

 private:
  fs::path made_;
  std::optional<files::TemporaryFolder> folder_;
};

std::string traced_folder(const TraceArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  return "results/" + programs::safe_name(arguments.name.empty()
                                              ? programs::name_of(arguments.command)
                                              : arguments.name);
}

std::string on_other_ranks(const programs::ProgramRun& run) {
  std::vector<analysis::RankTrace> ranks;
  for (const auto& process : run.processes)
    if (process.rank >= 0)
      ranks.push_back({static_cast<std::int32_t>(process.rank), &process.trace});
  const auto text = ranks.size() < 2 ? "" : analysis::on_other_ranks(ranks);
  return text.empty() ? "" : fmt::format("{} ({})", text, analysis::page_of("ranks"));
}

std::string peak_of(const programs::ProgramRun& run, const TraceArguments& arguments,
                    const emulator::Look& look) {
  const auto* fullest = programs::fullest(run);
  if (fullest == nullptr) return "\n" + escaped_controls(run.reason) + "\n";
  const auto& trace = fullest->trace;
  const auto others = on_other_ranks(run);
  if (arguments.details)
    return "\n" + escaped_controls((others.empty() ? "" : others + "\n") +
                                   analysis::peak_text(trace, ended_of_it(run, *fullest)));
  auto brief = analysis::peak_brief(trace, trace::lifetimes(trace));
  if (!others.empty()) brief.advice = others;
  // The emulated card's summary stands right before.
  return (arguments.card.empty() ? "\n" : "") + peak_lines(brief, look);
}

void print_needed(programs::ProgramRun& run, const TraceArguments& arguments,
                  const fs::path& folder) {
  fs::create_directory(folder);
  programs::find_needed(run, {.card = arguments.card,
                              .command = arguments.command,
                              .values = arguments.values,
                              .folder = folder,
                              .limit = std::chrono::seconds(arguments.needed_timeout_s)});
  std::fputs(escaped_controls(programs::needed_text(run)).c_str(), stderr);
}

int run_trace(World& world, const TraceArguments& arguments) {
  std::optional<programs::StepRange> steps;
  if (arguments.steps) steps = programs::step_range(*arguments.steps);
  const auto folder = traced_folder(arguments);
  const auto there = arguments.overwrite ? programs::Folder::kOverwritten : programs::Folder::kNew;
  const bool is_new = !files::is_there(folder);
  programs::check_folder(folder, there);
  const JournalFolder journals(folder, is_new);
  programs::TraceRequest request;
  request.card = arguments.card;
  request.command = arguments.command;
  request.journals = journals.path();
  request.values = arguments.values;
  request.second_guesses = arguments.second_guesses;
  request.look = {.view = arguments.details ? emulator::View::kDetails : emulator::View::kSummary,
                  .colours = screen_of(STDERR_FILENO).live,
                  .width = [] { return table_width(STDERR_FILENO); }};
  request.steps = steps;
  auto [code, run, doubts, ignored] = programs::trace_program(request);
  if (!run) return code;
  std::fputs(peak_of(*run, arguments, request.look).c_str(), stderr);
  for (const auto& doubt : doubts)
    std::fprintf(stderr, "\n%s: %s.\n",
                 doubt.kind == records::VerdictKind::unreliable ? "Unreliable" : "Lower bound",
                 doubt.sentence.c_str());
  if (run->processes.empty()) return code;
  if (arguments.needed) print_needed(*run, arguments, journals.path() / "again");
  run->command = world.typed;
  if (!arguments.name.empty()) run->name = arguments.name;
  programs::write_program_run(*run, folder, there);
  reports::write_reports({folder}, own_report(world, folder));
  std::fprintf(stderr, "Report: %s\n", (fs::path(folder) / "report/index.html").c_str());
  return code;
}

}  // namespace

Command add_trace(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "trace", "Run a PyTorch program and report what fills its memory, by line and cause",
      kTraceFooter);
  const auto arguments = std::make_shared<TraceArguments>();
  add_value(*command, "--card", arguments->card,
            "Emulated card: h100-80gb, h100-80gb,memory=60GiB,count=8, or a JSON file (default: "
            "the machine's device)",
            "CARD");
  add_value(*command, "--name", arguments->name,
            "Name of the program in comparisons (default: its script's file name)", "NAME");
  add_value(*command, "--out", arguments->out, "Run folder (default: results/NAME)", "DIR");
  add_value(*command, "--steps", arguments->steps,
            "Steps of the trace to keep: 3, 2..4, ..4, 2.. (default: all)", "STEPS");
  command->add_flag("-v,--details", arguments->details,
                    "Also print every process, read, condition, cause and range");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run in that folder");
  command->add_flag_callback(
      "--no-compute", [arguments] { arguments->values.compute = false; },
      "Compute no values; most values that the host reads back are then unknown");
  add_second_guess(*command, arguments->second_guesses);
  command->add_flag_callback(
      "--no-needed", [arguments] { arguments->needed = false; },
      "After running out of an emulated card's memory, do not run again to find the memory needed");
  add_value(*command, "--needed-timeout", arguments->needed_timeout_s,
            "Time limit of that second run, in seconds (default 600)", "SECONDS")
      ->check(CLI::Range(std::int64_t{1}, planning::kMostSeconds));
  add_program(*command, arguments->command, "program", "Program and its arguments, after --")
      ->type_name("PROGRAM ARG");
  return [&world, arguments] {
    if (arguments->command.empty())
      throw ConfigError(
          "no program to run; expected: peakbench trace --card h100-80gb -- python3 train.py");
    arguments->command = runnable(arguments->command);
    return run_trace(world, *arguments);
  };
}

}  // namespace peakbench::cli
