// `peakbench work`: one task of a submission, on the machine that a scheduler gave it.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "cli/commands.h"
#include "cli/worker.h"
#include "executor/work.h"

namespace peakbench::cli {
namespace {

constexpr const char* kWorkFooter =
    R"(The batch script of `peakbench run --executor slurm` calls this command; you need not call it.

Example:
  peakbench work results/vit/queue/1 --task 3
Exit codes: 0 every case of the task has a row; 2 the task could not start; 130 stopped by a signal, the
remaining cases are pending.)";

struct WorkArguments {
  std::string submission;
  std::size_t task = 0, jobs = 1;
};

// How often Slurm has begun this task before.
int attempt() {
  const char* text = std::getenv("SLURM_RESTART_COUNT");
  const std::string_view said = text == nullptr ? "" : text;
  int count = 0;
  const auto [rest, error] = std::from_chars(said.data(), said.data() + said.size(), count);
  return error == std::errc() && count > 0 ? count : 0;
}

std::string node() {
  if (const char* name = std::getenv("SLURMD_NODENAME")) return name;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Command add_work(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("work", "Run one task of a queue (called by Slurm jobs)");
  command->footer(kWorkFooter);
  const auto arguments = std::make_shared<WorkArguments>();
  command->add_option("queue", arguments->submission, "Folder of the queue: RUN/queue/N")
      ->required()
      ->type_name("QUEUE");
  command->add_option("--task", arguments->task, "Number of the task, from 0")
      ->required()
      ->type_name("N");
  command
      ->add_option("--jobs", arguments->jobs,
                   "Cases on emulated cards to run at a time (default 1)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  add_torch(*command, world);
  return [&world, arguments] {
    executor::WorkOptions options;
    options.submission = arguments->submission;
    options.task = arguments->task;
    options.jobs = arguments->jobs;
    options.attempt = attempt();
    options.node = node();
    return executor::work(options, {[&world] { return worker_of(world); }, world.make_runner},
                          world.out)
               ? kDone
               : kInterrupted;
  };
}

}  // namespace peakbench::cli
