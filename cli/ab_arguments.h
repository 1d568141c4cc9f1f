// The arguments of `peakbench ab`, as typed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "ab/measure.h"
#include "cli/axis_options.h"

namespace peakbench::cli {

struct AbArguments {
  std::string base, now;  // builds: folders with bin/peakbench-worker
  TypedLists cases;
  std::vector<std::string> new_strategies;
  std::string device = "cpu";
  std::int64_t pairs = 20, steps = 10, warmup = 3, threads = 0, timeout_s = 3600;
  std::uint64_t seed = 0;
  std::string memory_limit, margin = "2%", false_alarms = "1%";
  std::vector<std::string> plugins, base_plugins, new_plugins;
  std::string out;
  bool json = false, gate = false, quiet = false;
};

void add_ab_options(CLI::App& command, AbArguments& arguments);

// What was typed, checked. `command`: the whole command line, for the record. Throws ConfigError.
ab::Order ab_order(const AbArguments& arguments, const std::vector<std::string>& command);

}  // namespace peakbench::cli
