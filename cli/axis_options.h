// The axes of a run's cases as options that may be given several times.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace peakbench::cli {

// What was typed, by axis; those that were not typed are empty.
using TypedLists = std::map<result::Axis, std::vector<std::string>>;

// An option whose every value is kept as typed.
CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& words,
                          const std::string& type);

CLI::Option* add_axis_option(CLI::App& command, const result::AxisRow& row, TypedLists& typed);

// What was typed, split at commas and checked, in the place of what the request has. Throws
// ConfigError that names the option.
void take_typed(const TypedLists& typed, plan::Request& request);

}  // namespace peakbench::cli
