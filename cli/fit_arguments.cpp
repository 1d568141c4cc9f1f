#include "cli/fit_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "cli/program_words.h"
#include "cli/python_program.h"
#include "emulator/host/card.h"
#include "planning/programs.h"
#include "programs/traced.h"
#include "records/device.h"

namespace peakbench::cli {
namespace {

using records::Axis;
using search::Along;

// Whose kernels a budget without a card means.
constexpr const char* kCardOfBudgets = "h100-80gb";

std::vector<std::string> all_cards() {
  std::vector<std::string> ids;
  for (const auto& card : emulator::list_cards(emulator::find_installation()))
    if (card.served) ids.push_back(card.id);
  return ids;
}

std::vector<std::string> devices_of(const FitArguments& arguments) {
  auto cards = asks_for_smallest_card(arguments) ? all_cards()
                                                 : split_values(arguments.cards, true, "--card");
  for (const auto& budget : split_values(arguments.budgets, false, "--budget")) {
    const auto bytes = bytes_from(budget, "--budget");
    // As typed where that is one word.
    cards.push_back(
        fmt::format("{},memory={}", kCardOfBudgets,
                    budget.find(' ') == std::string::npos ? budget : fmt::format("{}B", bytes)));
  }
  for (auto& card : cards) card = records::emulated_device(card);
  return cards;
}

void check_where(const FitArguments& arguments) {
  if (!arguments.cards.empty() && !arguments.budgets.empty())
    throw ConfigError(
        "--card and --budget both set the memory; give one of them (for a card with another "
        "memory: --card h100-80gb,memory=20GiB)");
  if (arguments.cards.empty() && arguments.budgets.empty())
    throw ConfigError(
        "no card is named: give --card NAME (`peakbench list devices` shows them), --card all for "
        "the smallest, or --budget SIZE");
}

// Options that say what a case of ours is mean nothing to somebody's program.
void check_for_program(const FitArguments& arguments) {
  const auto refuse = [](bool was_typed, const std::string& option) {
    if (was_typed)
      throw ConfigError(
          fmt::format("{} is for models of Peakbench; a program after -- has its own options",
                      option.substr(option.find("--"))));
  };
  for (const auto* row : records::asked_axes())
    refuse(is_typed(arguments.cases, row->axis), row->asked->option);
  refuse(arguments.steps.has_value(), "--steps");
  refuse(!arguments.cudnn.empty(), "--cudnn");
  refuse(!arguments.plugins.empty(), "--plugins");
  refuse(!arguments.program.empty(), "--program");
  if (!arguments.largest.empty())
    throw ConfigError("--largest is for models of Peakbench; for a program: --vary NAME=1..64");
}

void check_lists(const FitArguments& arguments, Along along) {
  const auto refuse = [](const char* option, const char* word) {
    throw ConfigError(
        fmt::format("{0} sets the {1}, and --largest {1} searches for it; leave one of them out",
                    option, word));
  };
  if (!arguments.vary.empty())
    throw ConfigError("--vary is for a program after --; for a model, use --largest");
  if (arguments.second_guesses > 0 && arguments.program.empty())
    throw ConfigError("--second-guess is for programs; leave it out");
  if (along == Along::kBatch && is_typed(arguments.cases, Axis::kBatchSize))
    refuse("--batch", "batch");
  if (along == Along::kSequence && is_typed(arguments.cases, Axis::kSequenceLength))
    refuse("--seq", "seq");
}

}  // namespace

void add_fit_options(CLI::App& command, FitArguments& arguments) {
  for (const auto* row : records::asked_axes())
    if (row->axis != Axis::kDevice) {
      auto* option = add_axis_option(command, *row, arguments.cases);
      if (row->axis == Axis::kBatchSize)
        option->description(
            "Batch size, in samples: check whether it fits (default: find the largest)");
    }
  add_python_program(command, arguments.program);
  add_repeated(command, "--card", arguments.cards,
               "Emulated cards: a100-40gb,rtx-4090-24gb; all: find the smallest that fits", "CARD");
  add_repeated(command, "--budget", arguments.budgets,
               "Memory to fit, instead of a card: 20GiB; the emulated card is an h100-80gb",
               "SIZE");
  add_value(command, "--largest", arguments.largest,
            "Quantity to maximize: batch (default without --batch), seq, layers, rank",
            "batch|seq|layers|rank");
  add_value(command, "--vary", arguments.vary,
            "Values of {NAME} in the command of a program: NAME=1..64", "NAME=A..B");
  add_number(command, "--steps", arguments.steps, "Steps of a run (default 3)", 1,
             planning::kMostSteps);
  add_number(command, "--check", arguments.check,
             "Values to run on either side of a boundary (default 3; 1: only the adjacent ones)", 1,
             100);
  command.add_flag("--least", arguments.least,
                   "Also find the least memory that each case runs in; takes several more runs");
  add_number(command, "--timeout", arguments.timeout_s,
             "Time limit of a run, in seconds (default 3600)", 1, planning::kMostSeconds);
  add_jobs(command, arguments.jobs, "Cells of the table to search at a time");
  add_assume(command, arguments.assume, "Sizes that depend on unknown values: no rows or all rows");
  add_second_guess(command, arguments.second_guesses);
  add_on_off(command, "--cudnn", arguments.cudnn, "Use cuDNN: on (PyTorch's default) or off");
  add_repeated(command, "--plugins", arguments.plugins,
               "Folder with more plugins (can be repeated)", "DIR");
  add_value(command, "-o,--out", arguments.out,
            "Folder of the results (default: results/fit-NAME-TIME)", "DIR");
  command.add_flag("--overwrite", arguments.overwrite, "Delete the run in --out first");
  command.add_flag("--no-report", arguments.no_report, "Write run.json and fit.json only");
  command.add_flag("-q,--quiet", arguments.quiet, "Print only the result and errors");
  add_output_format(command, arguments.format);
  add_program(command, arguments.command, "program", "Program and its arguments, after --")
      ->type_name("PROGRAM ARG");
}

bool asks_for_smallest_card(const FitArguments& arguments) {
  const auto cards = split_values(arguments.cards, true, "--card");
  const bool all = std::ranges::count(cards, "all") != 0;
  if (all && cards.size() > 1) throw ConfigError("--card all is every card; leave the others out");
  return all;
}

Along along_of(const FitArguments& arguments) {
  if (!arguments.largest.empty()) return search::along_from(arguments.largest);
  const bool is_sized =
      is_typed(arguments.cases, Axis::kBatchSize) || asks_for_smallest_card(arguments);
  return is_sized ? Along::kNothing : Along::kBatch;
}

std::optional<Vary> vary_of(const FitArguments& arguments) {
  if (arguments.vary.empty()) return std::nullopt;
  const auto equals = arguments.vary.find('=');
  const auto name = arguments.vary.substr(0, equals);
  const auto range = equals == std::string::npos ? "" : arguments.vary.substr(equals + 1);
  const auto dots = range.find("..");
  if (!planning::is_axis_name(name) || dots == std::string::npos)
    throw ConfigError(
        fmt::format("--vary \"{}\": expected NAME=FIRST..LAST, like batch=1..64", arguments.vary));
  const auto number = [&](const std::string& text) {
    return positive_numbers({text}, "--vary", records::kMostSamples).front();
  };
  Vary vary{
      .axis = name,
      .limits = {.first = number(range.substr(0, dots)), .last = number(range.substr(dots + 2))}};
  if (vary.limits.first > vary.limits.last)
    throw ConfigError(
        fmt::format("--vary \"{}\": the last value is smaller than the first", arguments.vary));
  return vary;
}

planning::Request fit_request(const FitArguments& arguments, Along along) {
  check_where(arguments);
  check_lists(arguments, along);
  planning::Request request;
  take_typed(arguments.cases, request);
  request.lists[Axis::kDevice] = devices_of(arguments);
  if (!arguments.program.empty()) {
    if (!arguments.cudnn.empty()) refuse_for_python("--cudnn", arguments.program);
    if (!arguments.plugins.empty()) refuse_for_python("--plugins", arguments.program);
    take_python_program(arguments.program, arguments.cases, request);
    request.second_guesses = arguments.second_guesses;
  } else if (request.lists[Axis::kModel].empty()) {
    throw ConfigError(
        "no model was named: give --model NAME (`peakbench list models` shows them), --program "
        "PLACE:MODEL, or a program after --");
  } else {
    request.title = fmt::format("{}", fmt::join(request.lists[Axis::kModel], " and "));
  }
  if (arguments.steps) request.steps = *arguments.steps;
  if (arguments.timeout_s) request.timeout_s = *arguments.timeout_s;
  request.assume = arguments.assume;
  if (!arguments.cudnn.empty()) request.device_options["cudnn"] = arguments.cudnn;
  request.repetitions = 0;
  request.ablation = false;
  return request;
}

planning::Program fit_program(const FitArguments& arguments, const std::optional<Vary>& vary) {
  check_where(arguments);
  check_for_program(arguments);
  auto program = program_of(arguments.command, "behind --");
  program.devices = devices_of(arguments);
  if (!vary) {
    for (const auto& word : arguments.command) {
      if (word.size() <= 2 || word.front() != '{' || word.back() != '}') continue;
      if (const auto name = word.substr(1, word.size() - 2); planning::is_axis_name(name))
        throw ConfigError(
            fmt::format("{}: nothing gives it values: add --vary {}=1..64", word, name));
    }
    return program;
  }
  program.command = arguments.command;  // with placeholders
  bool is_there = false;
  for (const auto& word : program.command)
    for (const auto& name : planning::placeholders_in(word)) {
      if (name != vary->axis)
        throw ConfigError(
            fmt::format("\"{}\": --vary gives {{{}}} values, and nothing gives {{{}}} any; write a "
                        "literal brace twice: {{{{ or }}}}",
                        word, vary->axis, name));
      is_there = true;
    }
  if (!is_there)
    throw ConfigError(
        fmt::format("--vary {0}: there is no {{{0}}} in the command; write it where "
                    "the value goes, as in: -- python3 train.py --{0} {{{0}}}",
                    vary->axis));
  program.axes[vary->axis] = {{vary->limits.first, std::to_string(vary->limits.first)}};
  return program;
}

}  // namespace peakbench::cli
