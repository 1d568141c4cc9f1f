// The newest run of the branch against the last good one before it. For the room's own use.
#pragma once

#include <optional>
#include <string>

#include "reports/site/site.h"
#include "reports/site/views.h"

namespace peakbench::site {

struct Pair {
  history::RunRow base, now;
};

// nullopt where the newest run has none before it, on its branch and of its suite. Where none of
// these is good, the one before it.
std::optional<Pair> latest_pair(const Contents& contents);

// A page (reports/compare/render.h). nullopt where the two have no case in common, which is no
// mistake here: a suite may change. Throws ConfigError for a wrong template.
std::optional<std::string> comparison_page(const history::History& history, const Pair& pair,
                                           const Options& options);

}  // namespace peakbench::site
