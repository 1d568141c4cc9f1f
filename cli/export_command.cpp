// `peakbench export`: the trace of a case for the tools that people have.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/named_case.h"
#include "cli/one_of.h"
#include "errors/errors.h"
#include "files/file.h"
#include "result/run.h"
#include "result/run_paths.h"
#include "trace/chrome_export.h"
#include "trace/snapshot_export.h"
#include "trace/trace_file.h"

namespace peakbench::cli {
namespace {

using result::CaseResult;
using result::has_trace;

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

const CaseResult& case_of(const result::Run& run, const ExportArguments& arguments) {
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
  const auto run = result::read_run(arguments.run);
  const auto& result = case_of(run, arguments);
  const bool chrome = arguments.format == "chrome";
  const auto out =
      arguments.out.empty() ? new_file(result, chrome ? ".json" : ".pickle") : arguments.out;
  const auto trace =
      trace::read_trace(result::trace_file(result, result::run_folder_of(arguments.run)));
  try {
    const auto lifetimes = trace::lifetimes(trace);
    (chrome ? trace::write_chrome_trace : trace::write_memory_snapshot)(trace, lifetimes, out);
  } catch (const TraceError& error) {
    throw ConfigError(error.what());
  }
  world.out << out << "\n";
  return kDone;
}

}  // namespace

Command add_export(CLI::App& app, World& world) {
  auto* command = app.add_subcommand(
      "export", "Export a case's trace as a PyTorch memory snapshot or for Perfetto");
  command->footer(kExportFooter);
  const auto arguments = std::make_shared<ExportArguments>();
  command->add_option("run", arguments->run, "Run folder, or its run.json")
      ->required()
      ->type_name("RUN");
  command->add_option("case", arguments->wanted, "Case; optional if the run has only one")
      ->type_name("CASE");
  command
      ->add_option("-f,--format", arguments->format, "Output format: snapshot (default) or chrome")
      ->check(one_of({"snapshot", "chrome"}))
      ->type_name("NAME");
  command
      ->add_option("-o,--out", arguments->out,
                   "Output file (default: SLUG.pickle or SLUG.json in the working directory)")
      ->type_name("FILE");
  return [&world, arguments] { return write(world, *arguments); };
}

}  // namespace peakbench::cli
