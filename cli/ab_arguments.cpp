#include "cli/ab_arguments.h"

#include <fmt/format.h>

#include "cli/measure.h"
#include "cli/plugin_folders.h"
#include "cli/quantities.h"
#include "cli/whole_number.h"
#include "errors/errors.h"

namespace peakbench::cli {
namespace {

using result::Axis;

void add_cases(CLI::App& command, AbArguments& arguments) {
  const std::string group = "Cases (they multiply; each has pairs of its own)";
  for (const auto* row : result::asked_axes()) {
    if (row->axis == Axis::kDevice) {
      command.add_option(row->asked->option, arguments.device, row->asked->help)
          ->type_name(row->asked->type)
          ->group(group);
      continue;
    }
    auto* option = add_axis_option(command, *row, arguments.cases)->group(group);
    option->required(row->asked->required);
    if (row->axis != Axis::kStrategy) continue;
    option->description("Strategy or stack");
    add_repeated(command, "--new-strategy", arguments.new_strategies,
                 "Other strategies for NEW, as many: compares strategies and not only builds",
                 row->asked->type)
        ->group(group);
  }
}

void add_measuring(CLI::App& command, AbArguments& arguments) {
  constexpr std::int64_t kMany = 1'000'000;
  const auto number = [&](const char* name, std::int64_t& value, const char* words,
                          std::int64_t from) {
    command.add_option(name, value, words)->check(CLI::Range(from, kMany))->type_name("N");
  };
  number("--pairs", arguments.pairs, "Pairs of processes (default 20)", 1);
  number("--steps", arguments.steps, "Timed steps of each process (default 10)", 1);
  number("--warmup", arguments.warmup, "Steps before timing starts (default 3)", 0);
  number("--threads", arguments.threads, "Threads of a process (default 0: LibTorch's)", 0);
  number("--timeout", arguments.timeout_s, "Seconds that one process may take (default 3600)", 1);
  command.add_option("--memory-limit", arguments.memory_limit, "Budget of a process's CPU tensors")
      ->type_name("SIZE");
  command
      .add_option("--seed", arguments.seed,
                  "Decides which build goes first in each pair (default 0)")
      ->check(whole_number(0))
      ->type_name("N");
  command.add_option("--margin", arguments.margin, "Slower by less is the same (default 2%)")
      ->type_name("PART");
  command
      .add_option("--false-alarms", arguments.false_alarms,
                  "How often an equally fast build may be called worse (default 1%)")
      ->type_name("PART");
}

plan::Request request_of(const AbArguments& arguments, bool of_base) {
  plan::Request request;
  request.title = "ab";
  take_typed(arguments.cases, request);
  auto& strategies = request.lists[Axis::kStrategy];
  if (!of_base && !arguments.new_strategies.empty()) {
    auto others = split_values(arguments.new_strategies, true, "--new-strategy");
    if (others.size() != strategies.size())
      throw ConfigError(
          "--new-strategy: expected as many as --strategy: each is compared with "
          "the one in its place");
    strategies = std::move(others);
  }
  request.lists[Axis::kDevice] = {arguments.device};
  request.steps = arguments.steps;
  request.warmup = arguments.warmup;
  request.threads = arguments.threads;
  request.timeout_s = arguments.timeout_s;
  if (!arguments.memory_limit.empty())
    request.memory_limit_bytes = bytes_from(arguments.memory_limit, "--memory-limit");
  return request;
}

ab::BuildOrder build_order(const AbArguments& arguments, bool is_base) {
  auto plugins = named_folders(arguments.plugins);
  const auto& own = is_base ? arguments.base_plugins : arguments.new_plugins;
  plugins.insert(plugins.end(), own.begin(), own.end());
  return {is_base ? arguments.base : arguments.now, std::move(plugins),
          request_of(arguments, is_base)};
}

}  // namespace

void add_ab_options(CLI::App& command, AbArguments& arguments) {
  command
      .add_option("base", arguments.base,
                  "The build to compare with: an installation or a build folder, with "
                  "bin/peakbench-worker")
      ->required()
      ->type_name("BASE_BUILD");
  command.add_option("new", arguments.now, "The new build; the same folder twice is A/A")
      ->required()
      ->type_name("NEW_BUILD");
  add_cases(command, arguments);
  add_measuring(command, arguments);
  add_repeated(command, "--plugins", arguments.plugins, "More plugins for both", "DIR");
  add_repeated(command, "--base-plugins", arguments.base_plugins, "More plugins for BASE", "DIR");
  add_repeated(command, "--new-plugins", arguments.new_plugins, "More plugins for NEW", "DIR");
  command
      .add_option("-o,--out", arguments.out,
                  "Folder of ab.json and the logs (default "
                  "results/ab-TIME)")
      ->type_name("DIR");
  command.add_flag("--json", arguments.json, "Print ab.json instead of text");
  command.add_flag("--gate", arguments.gate, "Exit with 4 where a case is worse");
  command.add_flag("-q,--quiet", arguments.quiet, "No line a pair");
}

ab::Order ab_order(const AbArguments& arguments, const std::vector<std::string>& command) {
  ab::Order order;
  order.base = build_order(arguments, true);
  order.now = build_order(arguments, false);
  order.pairs = arguments.pairs;
  order.seed = arguments.seed;
  order.folder = arguments.out.empty() ? folder_for("ab") : arguments.out;
  order.command = command;
  return order;
}

}  // namespace peakbench::cli
