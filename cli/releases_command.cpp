// `peakbench releases`: a run with several releases of PyTorch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bundled_suites.h"
#include "cli/commands.h"
#include "cli/program_words.h"
#include "cli/run_arguments.h"
#include "cli/run_command.h"
#include "cli/worker.h"
#include "errors/errors.h"
#include "workers/choose.h"

namespace peakbench::cli {
namespace {

using result::Axis;

constexpr const char* kReleasesFooter = R"(Examples:
  peakbench releases --torch 2.6,2.11,newest -- python3 train.py
  peakbench releases --torch 2.11,newest --model vit-l-16 --device emulated:h100-80gb
  peakbench releases tutorial
Short for `peakbench run --torch ...`: prints a table with a row for each release, and what changed from one
release to the next. A program runs with each release in a separate environment: that PyTorch without
NVIDIA's packages, installed once by pip (1 to 2 GB each), with your other packages or those of
--requirements. Without --torch, a program runs with the environment's PyTorch and the newest release;
models run with every PyTorch that has a worker.
Exit codes: those of `run`; 2 a release cannot be installed.)";

struct ReleasesArguments {
  RunArguments run;
  std::vector<std::string> words;
};

std::vector<std::string> releases_of_programs() {
  const auto environment = workers::torch_of_environment();
  if (!environment.torch)
    throw ConfigError(fmt::format("{}: name the releases: --torch 2.6,2.11,{}",
                                  workers::about(environment), workers::kNewest));
  return {environment.torch->version, workers::kNewest};
}

class ReleasesCommand {
 public:
  ReleasesCommand(World& world, RunArguments arguments)
      : world_(world), arguments_(std::move(arguments)) {}

  int go(const std::vector<std::string>& words, const std::vector<std::string>& typed) {
    if (std::ranges::find(typed, "--") != typed.end() || (!words.empty() && is_script(words[0])))
      arguments_.command = runnable(words);
    else if (words.size() > 1)
      throw ConfigError(
          fmt::format("one suite at a time, or a program after --: peakbench releases -- {}",
                      fmt::join(words, " ")));
    else if (!words.empty())
      arguments_.suite = suite_file(world_.places, words.front());
    auto& releases = arguments_.cases[Axis::kTorch];
    if (releases.empty())
      releases =
          arguments_.command.empty() ? releases_with_workers(world_) : releases_of_programs();
    return run_cases(world_, arguments_, typed);
  }

 private:
  World& world_;
  RunArguments arguments_;
};

}  // namespace

Command add_releases(CLI::App& app, World& world, const std::vector<std::string>& typed) {
  auto* command = app.add_subcommand("releases", "Compare the memory of several PyTorch releases");
  command->footer(kReleasesFooter);
  const auto arguments = std::make_shared<ReleasesArguments>();
  add_releases_options(*command, arguments->run);
  add_program(*command, arguments->words, "what",
              "Suite, or a program and its arguments after --; or use --model")
      ->type_name("SUITE|-- PROGRAM ARG");
  return [&world, arguments, &typed] {
    return ReleasesCommand(world, arguments->run).go(arguments->words, typed);
  };
}

}  // namespace peakbench::cli
