#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/named_case.h"
#include "cli/option_values.h"
#include "emulator/host/emulation_text.h"
#include "programs/import.h"
#include "programs/run_folder.h"
#include "programs/traced.h"
#include "records/run.h"
#include "records/run_files.h"
#include "reports/analysis/peak_text.h"
#include "reports/run/report.h"
#include "trace/chrome_export.h"
#include "trace/snapshot_export.h"
#include "trace/trace_file.h"

namespace peakbench::cli {
// `peakbench export`: the trace of a case for the tools that people have.

namespace {

using records::CaseResult;
using records::has_trace;

constexpr const char* kExportFooter = R"(Examples:
  peakbench export results/vit
  peakbench export results/vit foreach-off --format chrome --out foreach-off.json
  peakbench export results/vit vit-l-16/baseline/cpu/fp32/b1 --out baseline.pickle
  python3 -m torch.cuda._memory_viz trace_plot baseline.pickle -o baseline.html
CASE is an id, a slug or, if unambiguous, a stack of strategies. Open `snapshot` with
`python3 -m torch.cuda._memory_viz` or pytorch.org/memory_viz, and `chrome` with ui.perfetto.dev
(docs/reference/trace.md). On an emulated card, times are event numbers.
Exit codes: 0 done; 2 no such run, case or trace, or the file cannot be written.)";

struct ExportArguments {
  std::string run, wanted, format = "snapshot", out;
};

const CaseResult& case_of(const records::Run& run, const ExportArguments& arguments) {
  const auto& result = named_case(run, {.run = arguments.run,
                                        .name = arguments.wanted,
                                        .serves = has_trace,
                                        .no_case = "no case of this run has a trace"});
  if (!has_trace(result))
    throw ConfigError(fmt::format("{}: {} has no trace: it ended {}", arguments.run, result.spec.id,
                                  to_string(result.status)));
  return result;
}

// What nobody named replaces nothing.
std::string new_file(const CaseResult& result, const char* ending) {
  auto name = result.spec.slug + ending;
  if (files::is_there(name))
    throw ConfigError(fmt::format(
        "{}: the file exists; name it with --out to replace it, or name another file", name));
  return name;
}

int write(World& world, const ExportArguments& arguments) {
  const auto run = records::read_run(arguments.run);
  const auto& result = case_of(run, arguments);
  const bool chrome = arguments.format == "chrome";
  const auto out =
      arguments.out.empty() ? new_file(result, chrome ? ".json" : ".pickle") : arguments.out;
  const auto trace =
      trace::read_trace(records::trace_file(result, records::run_folder_of(arguments.run)));
  try {
    const auto lifetimes = trace::lifetimes(trace);
    (chrome ? trace::write_chrome_trace : trace::write_memory_snapshot)(trace, lifetimes, out);
  } catch (const TraceError& error) {
    throw ConfigError(error.what());
  }
  world.out << out << "\n";
  return kDone;
}

// `peakbench import`: a memory snapshot that PyTorch wrote, as a run with its report.

namespace fs = std::filesystem;

constexpr const char* kImportFooter = R"(Examples:
  peakbench import snapshot.pickle
  peakbench import snapshot.pickle --output results/mine --name train
  peakbench import snapshots_of_ranks --output results/ranks
To make a snapshot in any PyTorch program, call torch.cuda.memory._record_memory_history() before the part to
record and torch.cuda.memory._dump_snapshot("snapshot.pickle") after it. The file is parsed, never
unpickled: no code in it runs. `compare` and `gate` compare two imported runs if their programs have one name.
Exit codes: 0 done; 2 the file is not a snapshot or is damaged, or the folder contains a run.)";

struct ImportArguments {
  std::string snapshot, out, name, card;
  bool overwrite = false;
};

// Beside others' runs, by the file's or the folder's name.
std::string folder_of(const ImportArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  const auto path = fs::absolute(arguments.snapshot).lexically_normal();
  const auto name = path.has_filename() ? path.stem() : path.parent_path().filename();
  return (fs::path("results") / name).string();
}

// Of a folder: which file is which rank's, and of which step.
std::string files_table(const programs::RankFiles& files) {
  constexpr std::size_t kMost = 64;
  if (files.files.size() + files.earlier.size() == 1) return "";
  std::string text = fmt::format("{:>6} {:>8}  file\n", "rank", "step");
  std::size_t rows = 0;
  const auto add = [&](const std::vector<programs::RankFile>& some, const char* note) {
    for (const auto& file : some)
      if (++rows <= kMost)
        text += fmt::format("{:>6} {:>8}  {}{}\n", file.rank,
                            file.step ? std::to_string(*file.step) : "", file.name, note);
  };
  add(files.files, files.is_sure ? "" : "  (rank by the order or the number in its name)");
  add(files.earlier, "  (not imported: an earlier step)");
  return rows > kMost ? text + fmt::format("{} more files\n", rows - kMost) : text;
}

// What a reader of the figures must know first, and the peak in short.
std::string summary(const programs::ProgramRun& run, int width) {
  const emulator::Look look{.width = [width] { return width; }};
  std::string text;
  for (const auto* fact : {"history", "from_before", "lost", "above_reserved"})
    if (const auto found = run.settings.find(fact); found != run.settings.end())
      text += emulator::labelled("Note", found->get<std::string>(), look);
  const auto* fullest = programs::fullest(run);
  if (fullest == nullptr) return text;
  const auto brief = analysis::peak_brief(fullest->trace, trace::lifetimes(fullest->trace));
  text += emulator::labelled("Peak", brief.when, look) +
          emulator::labelled("By category (inferred)", brief.categories, look);
  return brief.fills.empty() ? text : text + emulator::labelled("Filled by", brief.fills, look);
}

int import(World& world, const ImportArguments& arguments) {
  const auto files = programs::snapshot_files(arguments.snapshot);
  auto run = programs::import_snapshots(arguments.snapshot, files, arguments.name, arguments.card);
  run.command = world.typed;
  const auto folder = folder_of(arguments);
  programs::write_program_run(
      run, folder, arguments.overwrite ? programs::Folder::kOverwritten : programs::Folder::kNew);
  world.out << escaped_controls(files_table(files) + summary(run, world.out_width)) << "\n";
  const auto written = reports::write_reports({folder}, own_report(world, folder));
  world.out << reports::main_table(records::read_run(folder), world.out_width)
            << fmt::format("\nResults: {}/run.json\n", folder);
  for (const auto& path : written)
    if (fs::path(path).extension() != ".svg") world.out << fmt::format("Report:  {}\n", path);
  return kDone;
}

}  // namespace

Command add_export(CLI::App& app, World& world) {
  auto* command = subcommand(app, "export",
                             "Export a case's trace as a PyTorch memory snapshot or for Perfetto",
                             kExportFooter);
  const auto arguments = std::make_shared<ExportArguments>();
  add_value(*command, "run", arguments->run, "Run folder, or its run.json", "RUN")->required();
  add_value(*command, "case", arguments->wanted, "Case; optional if the run has only one", "CASE");
  add_value(*command, "-f,--format", arguments->format,
            "Output format: snapshot (default) or chrome", "NAME")
      ->check(one_of({"snapshot", "chrome"}));
  add_value(*command, "-o,--out", arguments->out,
            "Output file (default: SLUG.pickle or SLUG.json in the working directory)", "FILE");
  return [&world, arguments] { return write(world, *arguments); };
}

Command add_import(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "import", "Import a PyTorch memory snapshot as a run with a report", kImportFooter);
  const auto arguments = std::make_shared<ImportArguments>();
  add_value(*command, "snapshot", arguments->snapshot,
            "File of torch.cuda.memory._dump_snapshot, or a folder with one file per rank",
            "SNAPSHOT")
      ->required();
  add_value(*command, "-o,--out,--output", arguments->out,
            "Folder of the results (default: results/SNAPSHOT)", "DIR");
  add_value(*command, "--name", arguments->name,
            "Name of the program (default: the script that most stacks begin in)", "NAME");
  add_value(*command, "--card", arguments->card,
            "Emulated card that the snapshot was made on (default: a real card)", "CARD");
  command->add_flag("--overwrite", arguments->overwrite, "Delete the run in --output first");
  return [&world, arguments] { return import(world, *arguments); };
}

}  // namespace peakbench::cli
