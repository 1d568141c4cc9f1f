#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/compare/compare.h"

namespace peakbench::compare {

// A comparison as pages: Markdown for a pull request, HTML for a closer look.

// What a gate says of the comparison, for the head of its pages.
struct GateNote {
  bool passed = true;
  std::string label;                  // "passed", "regression"
  std::vector<std::string> findings;  // "CASE: why", the first that stop it
};

struct PageOptions {
  std::vector<std::string> formats{"html", "markdown"};  // also: json, text
  std::string output_directory;                          // created where it is missing
  std::string template_directory;  // the user's: each file in it replaces ours; empty = none
  std::string builtin_template_directory;
  std::optional<GateNote> gate;
  std::size_t most_cases = 20;  // changed cases on a page; Markdown takes fewer where it must
  nlohmann::ordered_json json;  // what `json` writes; the comparison's own where it is null
};

// One page. Markdown stays short for any comparison, because GitHub limits comments to 65,536
// characters. HTML is one file; its timelines need the traces of both runs.
std::string render_markdown(const Comparison& comparison, const PageOptions& options);
std::string render_html(const Source& base, const Source& now, const Comparison& comparison,
                        const PageOptions& options);

// Writes comparison.html, .md, .json and .txt as the formats say, each atomically, and returns
// their paths. Nothing is written before everything is rendered. Throws ConfigError: unknown
// format, an invalid template, a folder that cannot be written.
std::vector<std::string> write_pages(const Source& base, const Source& now,
                                     const Comparison& comparison, const PageOptions& options);

}  // namespace peakbench::compare
