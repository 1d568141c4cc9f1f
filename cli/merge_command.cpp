// `peakbench merge`: runs made apart, as one.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "executor/merge.h"

namespace peakbench::cli {
namespace {

constexpr const char* kMergeFooter = R"(Example:
  peakbench merge results/cards-a results/cards-b --out results/all
The runs need the same settings, build, plugins and reference; where they differ, it is said in what. A case that
one run has measured and another has not is taken from the first. Exit codes: 0; 2 when the runs do not
fit together, or two have measured the same case.)";

struct MergeArguments {
  std::vector<std::string> runs;
  std::string out;
};

}  // namespace

Command add_merge(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand("merge", "Join runs that were made apart");
  command->footer(kMergeFooter);
  const auto arguments = std::make_shared<MergeArguments>();
  command->add_option("runs", arguments->runs, "Folders of runs")->required()->type_name("RUN");
  command->add_option("-o,--out", arguments->out, "Folder of the joined run")
      ->required()
      ->type_name("DIR");
  return [&world, arguments, &typed] {
    const launch::RunFolder out(arguments->out);
    const auto run = executor::merge_into(out, arguments->runs, typed);
    world.out << fmt::format("{}/run.json: {} cases, {} pending\n", out.path(), run.cases.size(),
                             run.pending.size());
    return kDone;
  };
}

}  // namespace peakbench::cli
