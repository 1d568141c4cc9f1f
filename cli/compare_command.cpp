// `peakbench compare`: one run against another. Says what differs and judges nothing.
#include <memory>

#include "cli/commands.h"
#include "cli/gate_arguments.h"
#include "json/json_text.h"

namespace peakbench::cli {
namespace {

constexpr const char* kCompareFooter = R"(Examples:
  peakbench compare results/main results/change
  peakbench compare history:main@latest results/change --json
  peakbench compare results/main results/change --out comparison
  peakbench compare results/main results/change --format markdown --out . --reserved 20MiB
Cases are matched by id. Cases of different cards are marked and not compared.
Exit codes: 0 compared, whatever differs (`peakbench gate` judges); 2 a run cannot be read, both runs are
the same, no case is in both, or a page cannot be written.)";

int show(World& world, const ComparisonArguments& arguments) {
  const auto compared = compare_runs(arguments);
  const auto written = write_pages(world, arguments, compared);
  if (arguments.json) {
    world.out << json_text(compare::to_json(compared.comparison));
    return kDone;
  }
  if (prints_csv(arguments)) {
    world.out << compare::to_csv(compared.comparison);
    return kDone;
  }
  world.out << compare::to_text(compared.comparison, world.out_width);
  for (const auto& path : written) world.out << path << "\n";
  return kDone;
}

}  // namespace

Command add_compare(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("compare", "Show what differs between two runs, and where");
  command->footer(kCompareFooter);
  const auto arguments = std::make_shared<ComparisonArguments>();
  add_comparison_options(*command, *arguments);
  return [&world, arguments] { return show(world, *arguments); };
}

}  // namespace peakbench::cli
