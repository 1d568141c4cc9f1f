// `peakbench quickstart`: the first figures, from a suite that comes with the program.
#include <fmt/format.h>

#include <memory>

#include "base/errors.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/run_command.h"
#include "cli/worker.h"

namespace peakbench::cli {
namespace {

constexpr const char* kQuickstartFooter = R"(Examples:
  peakbench quickstart
  peakbench quickstart --card rtx-4090-24gb
  peakbench quickstart --cpu
Takes seconds and needs no GPU. --cpu measures and times the same cases on the CPU as well, which takes
minutes. Results of an earlier call are kept.
Exit codes: those of `peakbench run`.)";

struct QuickstartArguments {
  std::string out = "results/quickstart", card = "h100-80gb";
  bool cpu = false;
};

int quickstart(World& world, const QuickstartArguments& arguments) {
  const auto suite = bundled_suite(world.places, "quickstart");
  if (!files::is_there(suite))
    throw ConfigError(suite + ": the suite is missing; is the installation complete?");
  const auto device = "emulated:" + arguments.card;
  choose_worker_of_quickstart(world, device);
  std::vector<std::string> run{"run",   suite,         "--device", device,
                               "--out", arguments.out, "--resume"};
  if (arguments.cpu) run.insert(run.end(), {"--device", "cpu"});
  if (!world.torch.empty()) run.insert(run.end(), {"--torch", world.torch});
  const int code = run_program(run, world);
  if (code == kDone)
    world.out << fmt::format("Open the report: peakbench open {}\nNext: peakbench run --help\n",
                             arguments.out);
  return code;
}

}  // namespace

Command add_quickstart(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "quickstart", "Measure five strategies on two models on an emulated card",
                 kQuickstartFooter);
  const auto arguments = std::make_shared<QuickstartArguments>();
  add_value(*command, "--card", arguments->card, "Emulated card", "CARD")->capture_default_str();
  command->add_flag("--cpu", arguments->cpu, "Also measure and time on the CPU");
  add_value(*command, "-o,--out", arguments->out, "Folder of the results", "DIR")
      ->capture_default_str();
  add_torch(*command, world);
  return [&world, arguments] { return quickstart(world, *arguments); };
}

}  // namespace peakbench::cli
