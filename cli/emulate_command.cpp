// `peakbench emulate`: any program that uses PyTorch with CUDA, on a card that is not there.
#include <unistd.h>

#include <memory>

#include "cli/commands.h"
#include "cli/emulate_peak.h"
#include "cli/screen.h"
#include "host/run_emulated.h"

namespace peakbench::cli {
namespace {

constexpr const char* kEmulateFooter = R"(Examples:
  peakbench emulate --card h100-80gb -- python3 train.py
  peakbench emulate --card a100-40gb,memory=20GiB --json took.json -- python3 train.py --batch 8
  peakbench emulate --card h100-80gb --assume nonzero=all -- python3 train.py
  peakbench emulate --card h100-80gb,count=8 -- torchrun --nproc-per-node 8 train.py

The first line says whether the program fits the card and how far that can be relied on; the verdict
and what each process took follow. Memory is PyTorch's own. Kernels do nothing: small tensors are
computed on the host where what they depend on is known, and there are no times (docs/emulator.md).
`peakbench list devices` shows the cards.
Exit code: the program's; 128 + N when signal N ended it; 2 when there was nothing to run, or --json
cannot be written.)";

}  // namespace

Command add_emulate(CLI::App& app) {
  auto* command = app.add_subcommand(
      "emulate", "Run any PyTorch program on an emulated CUDA card and say what it took of it");
  command->footer(kEmulateFooter);
  const auto request = std::make_shared<emulator::EmulateRequest>();
  command
      ->add_option("--card", request->card,
                   "Card: h100-80gb (default), h100-80gb,memory=60GiB,count=8, or a JSON file")
      ->type_name("CARD");
  command->add_option("--json", request->json_path, "Write the figures to this file too")
      ->type_name("FILE");
  command->add_flag_callback(
      "--no-compute", [request] { request->values.compute = false; },
      "Compute no values: what the host reads back is then mostly unknown");
  command
      ->add_option("--assume", request->values.assume,
                   "nonzero=all or nonzero=none: rows of results whose count depends on values "
                   "that are not known; gives an upper or a lower bound")
      ->type_name("NAME=WHAT");
  command->add_option("program", request->command, "The program and its arguments, after --")
      ->type_name("PROGRAM ARG");
  request->look.colours = screen_of(STDERR_FILENO).live;
  request->look.width = [] { return table_width(STDERR_FILENO); };
  const auto lines = std::make_shared<bool>(true);
  command->add_flag_callback(
      "--no-lines", [lines] { *lines = false; },
      "Do not tell what fills the peak: the program is not traced for it");
  return [request, lines] {
    if (*lines) tell_peak(*request);
    return emulator::run_emulated(*request);
  };
}

}  // namespace peakbench::cli
