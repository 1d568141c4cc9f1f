#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "base/numbers.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/worker.h"
#include "cluster/merge.h"
#include "cluster/work.h"
#include "launch/interrupt.h"

namespace peakbench::cli {
// `peakbench work`: one task of a submission, on the machine that a scheduler gave it.

namespace {

constexpr const char* kWorkFooter =
    R"(The batch script of `peakbench run --executor slurm` calls this command; you need not call it.

Example:
  peakbench work results/vit/queue/1 --task 3
Exit codes: 0 every case of the task has a row; 2 the task could not start; 130 stopped by a signal, the
remaining cases are pending.)";

// How often Slurm has begun this task before.
int attempt() {
  const char* text = std::getenv("SLURM_RESTART_COUNT");
  return static_cast<int>(integer_from_text(text == nullptr ? "" : text, {0, 1 << 30}).value_or(0));
}

std::string node() {
  if (const char* name = std::getenv("SLURMD_NODENAME")) return name;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// `peakbench merge`: runs made apart, as one.

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

Command add_work(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "work", "Run one task of a queue (called by Slurm jobs)", kWorkFooter);
  const auto arguments = std::make_shared<cluster::WorkOptions>();
  add_value(*command, "queue", arguments->submission, "Folder of the queue: RUN/queue/N", "QUEUE")
      ->required();
  add_value(*command, "--task", arguments->task, "Number of the task, from 0", "N")->required();
  add_number(*command, "--jobs", arguments->jobs,
             "Cases on emulated cards to run at a time (default 1)", 1, 4096);
  add_torch(*command, world);
  return [&world, arguments] {
    auto options = *arguments;
    options.attempt = attempt();
    options.node = node();
    return cluster::work(options, {[&world] { return worker_of(world); }, world.make_runner},
                         world.out)
               ? kDone
               : kInterrupted;
  };
}

Command add_merge(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "merge", "Merge runs that were measured separately", kMergeFooter);
  const auto arguments = std::make_shared<MergeArguments>();
  add_value(*command, "runs", arguments->runs, "Folders of the runs", "RUN")->required();
  add_value(*command, "-o,--out", arguments->out, "Folder of the merged run", "DIR")->required();
  return [&world, arguments] {
    const launch::InterruptScope interrupts;
    const launch::RunFolder out(arguments->out);
    const auto merge = cluster::merge_into(out, arguments->runs, world.typed, launch::interrupted);
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
