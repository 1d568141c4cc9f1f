// `peakbench import`: a memory snapshot that PyTorch wrote, as a run with its report.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/own_report.h"
#include "program/import.h"
#include "program/run_folder.h"
#include "reports/report/report.h"
#include "result/run.h"

namespace peakbench::cli {
namespace {

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

int import(World& world, const ImportArguments& arguments, const std::vector<std::string>& typed) {
  auto run = program::import_snapshots(arguments.snapshot, arguments.name, arguments.card);
  run.command = typed;
  const auto folder = folder_of(arguments);
  program::write_program_run(
      run, folder, arguments.overwrite ? program::Folder::kOverwritten : program::Folder::kNew);
  const auto written = reports::write_reports({folder}, own_report(world, folder));
  world.out << reports::main_table(result::read_run(folder), world.out_width)
            << fmt::format("\nResults: {}/run.json\n", folder);
  for (const auto& path : written)
    if (fs::path(path).extension() != ".svg") world.out << fmt::format("Report:  {}\n", path);
  return kDone;
}

}  // namespace

Command add_import(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command =
      app.add_subcommand("import", "Import a PyTorch memory snapshot as a run with a report");
  command->footer(kImportFooter);
  const auto arguments = std::make_shared<ImportArguments>();
  command
      ->add_option("snapshot", arguments->snapshot,
                   "File of torch.cuda.memory._dump_snapshot, or a folder with one file per rank")
      ->required()
      ->type_name("SNAPSHOT");
  command
      ->add_option("-o,--out,--output", arguments->out,
                   "Folder of the results (default: results/SNAPSHOT)")
      ->type_name("DIR");
  command
      ->add_option("--name", arguments->name,
                   "Name of the program (default: the script that most stacks begin in)")
      ->type_name("NAME");
  command
      ->add_option("--card", arguments->card,
                   "Emulated card that the snapshot was made on (default: a real card)")
      ->type_name("CARD");
  command->add_flag("--overwrite", arguments->overwrite, "Delete the run in --output first");
  return [&world, arguments, &typed] { return import(world, *arguments, typed); };
}

}  // namespace peakbench::cli
