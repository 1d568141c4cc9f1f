// `peakbench merge`: runs made apart, as one.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "executor/merge.h"
#include "launch/interrupt.h"

namespace peakbench::cli {
namespace {

constexpr const char* kMergeFooter = R"(Example:
  peakbench merge results/cards-a results/cards-b --out results/all
The runs must have the same settings, build, plugins and reference; otherwise the error names the
difference. A case that only one of the runs has measured is taken from that run. The merged run is written
atomically.
Exit codes: 0 done; 2 the runs do not fit together, two of them measured the same case, or a file cannot be
copied; 130 interrupted, nothing is written.)";

struct MergeArguments {
  std::vector<std::string> runs;
  std::string out;
};

void note_absent(World& world, const std::vector<std::string>& traces) {
  if (traces.empty()) return;
  world.err << fmt::format(
      "note: {}{} not there, though run.json names {}; the joined run has the figures without {}\n",
      traces.front(),
      traces.size() > 1 ? fmt::format(" and {} more traces are", traces.size() - 1) : " is",
      traces.size() > 1 ? "them" : "it", traces.size() > 1 ? "them" : "it");
}

}  // namespace

Command add_merge(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand("merge", "Merge runs that were measured separately");
  command->footer(kMergeFooter);
  const auto arguments = std::make_shared<MergeArguments>();
  command->add_option("runs", arguments->runs, "Folders of the runs")->required()->type_name("RUN");
  command->add_option("-o,--out", arguments->out, "Folder of the merged run")
      ->required()
      ->type_name("DIR");
  return [&world, arguments, &typed] {
    const launch::InterruptScope interrupts;
    const launch::RunFolder out(arguments->out);
    const auto merge =
        executor::merge_into(out, arguments->runs, typed, [] { return launch::interrupted(); });
    if (!merge) {
      world.err << "Interrupted: nothing is written.\n";
      return kInterrupted;
    }
    note_absent(world, merge->absent_traces);
    world.out << fmt::format("{}/run.json: {} cases, {} pending\n", out.path(),
                             merge->run.cases.size(), merge->run.pending.size());
    return kDone;
  };
}

}  // namespace peakbench::cli
