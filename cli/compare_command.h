// What `compare` and `gate` both take: two runs, a policy, and where the reader wants the answer.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "reports/compare/render.h"

namespace peakbench::cli {

struct ComparisonArguments {
  std::string base, now, history, out, templates;
  std::vector<std::string> formats;
  bool json = false;
  std::map<std::string, std::string> policy;  // by key of the suite's table `gate`
};

void add_comparison_options(CLI::App& command, ComparisonArguments& arguments);

struct Compared {
  analysis::Source base, now;
  compare::Comparison comparison;
};

// Reads both, and compares them by the suite's policy with what was typed in its place. Throws
// ConfigError.
Compared compare_runs(const ComparisonArguments& arguments);

// `--format csv` without --out: the figures are printed in place of the text.
bool prints_csv(const ComparisonArguments& arguments);

// Files of the formats asked for, in --out; returns their paths. `json` is what the format json
// writes; null: the comparison's own.
std::vector<std::string> write_pages(const World& world, const ComparisonArguments& arguments,
                                     const Compared& compared,
                                     const std::optional<compare::GateNote>& gate = {},
                                     const nlohmann::ordered_json& json = {});

}  // namespace peakbench::cli
