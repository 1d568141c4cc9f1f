// How a command prints what it found: for people, as JSON, as CSV.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace peakbench::cli {

struct OutputFormat {
  std::string name = "text";
  bool is_text() const { return name == "text"; }

  // `all`: an array of objects for CSV.
  std::string of(const nlohmann::ordered_json& all) const;
};

// `--format text|json|csv`, and `--json` for short.
void add_output_format(CLI::App& command, OutputFormat& format);

}  // namespace peakbench::cli
