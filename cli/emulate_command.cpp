// `peakbench emulate`: any program that uses PyTorch with CUDA, on a card that is not there.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/emulate_peak.h"
#include "cli/program_words.h"
#include "cli/screen.h"
#include "cli/second_guess_option.h"
#include "errors/errors.h"
#include "host/run_emulated.h"

namespace peakbench::cli {
namespace {

using emulator::View;

constexpr const char* kEmulateFooter = R"(Examples:
  peakbench emulate --card h100-80gb -- python3 train.py
  peakbench emulate --card a100-40gb,memory=20GiB --json took.json -- python3 train.py --batch 8
  peakbench emulate --card h100-80gb --assume nonzero=all -- python3 train.py
  peakbench emulate --card h100-80gb,count=8 -- torchrun --nproc-per-node 8 train.py
  peakbench train.py --batch 8

The first line shows whether the program fits the card, and the verdict: how far the figures can be relied
on. What fills the peak follows. --details adds the memory, reads and CUDA calls of each process. PyTorch's
own allocator manages the memory. Kernels do nothing: small tensors with known inputs are computed on the
host, and nothing is timed (docs/how-to/emulate.md). `peakbench list devices` lists the cards. `peakbench train.py`
is short for `peakbench emulate -- python3 train.py`; `peakbench trace` writes a report.
Exit code: the program's; 128 + N if signal N ended it; 2 no program was given, or --json cannot be written.)";

struct EmulateArguments {
  emulator::EmulateRequest request;
  bool lines = true, details = false, quiet = false;
  std::string json;
};

View view_of(const EmulateArguments& arguments) {
  if (arguments.quiet) return View::kAnswer;
  return arguments.details ? View::kDetails : View::kSummary;
}

void add_output_options(CLI::App& command, EmulateArguments& arguments) {
  command
      .add_option("--json", arguments.json,
                  "Write the figures as JSON to FILE, or to standard output")
      ->type_name("[FILE]");
  command
      .add_option("--name", arguments.request.name,
                  "Name of the program in comparisons (default: its script's name)")
      ->type_name("NAME");
  auto* details = command.add_flag("-v,--details", arguments.details,
                                   "Also print every process, read, condition and context");
  command.add_flag("-q,--quiet", arguments.quiet, "Print only whether the program fits")
      ->excludes(details);
}

// The option of `emulate` that the program was given in its place, and where it belongs; empty:
// there is none. Short names are left out: programs have their own -v and -q.
std::string misplaced_option(const CLI::App& command, const std::vector<std::string>& program) {
  for (const auto& word : program) {
    const auto* option = word.starts_with("--") ? option_named(command, word) : nullptr;
    if (option == nullptr) continue;
    const auto name = word.substr(0, word.find('='));
    const auto value = takes_value(*option) ? " " + option->get_type_name() : "";
    const auto script = std::ranges::find_if(program, is_script);
    return fmt::format(
        "{0} follows the program and was passed to it. If it is an option of Peakbench, put it "
        "first: peakbench {0}{1} {2}",
        name, value, script == program.end() ? "-- " + program.front() : *script);
  }
  return "";
}

int emulate(World& world, const CLI::App& command, EmulateArguments& arguments) {
  auto& request = arguments.request;
  if (request.command.empty())
    throw ConfigError("no program to run; expected: peakbench emulate --card " + request.card +
                      " -- python3 train.py");
  const auto misplaced = misplaced_option(command, request.command);
  request.command = runnable(request.command);
  if (arguments.json == "-")
    request.json_out = &world.out;
  else
    request.json_path = arguments.json;
  request.look.view = view_of(arguments);
  if (command.count("--card") == 0) request.look.card_note = " (the default card)";
  if (arguments.lines) tell_peak(request, misplaced);
  return emulator::run_emulated(request);
}

}  // namespace

Command add_emulate(CLI::App& app, World& world) {
  auto* command = app.add_subcommand(
      "emulate", "Run a PyTorch program on an emulated CUDA card and report its peak memory");
  command->footer(kEmulateFooter);
  const auto arguments = std::make_shared<EmulateArguments>();
  auto& request = arguments->request;
  command
      ->add_option(
          "--card", request.card,
          "Emulated card: h100-80gb (default), h100-80gb,memory=60GiB,count=8, or a JSON file")
      ->type_name("CARD");
  add_output_options(*command, *arguments);
  command->add_flag_callback(
      "--no-compute", [&request] { request.values.compute = false; },
      "Compute no values; most values that the host reads back are then unknown");
  command
      ->add_option("--assume", request.values.assume,
                   "Sizes that depend on unknown values: nonzero=all gives an upper bound, "
                   "nonzero=none a lower bound")
      ->type_name("NAME=WHAT");
  add_second_guess(*command, request.second_guesses);
  add_program(*command, request.command, "program", "Program and its arguments, after --")
      ->type_name("PROGRAM ARG");
  request.look.colours = screen_of(STDERR_FILENO).live;
  request.look.width = [] { return table_width(STDERR_FILENO); };
  command->add_flag_callback(
      "--no-lines", [arguments] { arguments->lines = false; },
      "Do not trace the program to show what fills the peak");
  return [&world, arguments, command] { return emulate(world, *command, *arguments); };
}

}  // namespace peakbench::cli
