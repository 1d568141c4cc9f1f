// What a site's files are called. Stable: a link that was sent stays good.
#pragma once

#include <string>

#include "reports/history/history.h"

namespace peakbench::site {

// A safe file name from any text, unique by a short hash of it.
std::string safe_name(const std::string& text);

std::string trend_page(const history::Series& series);  // "trends/vit-l-16-...-0a1b2c3d.html"
std::string report_page(std::int64_t run);              // "runs/12/index.html"
std::string runs_page(std::size_t number);              // "runs/index.html", "runs/page-2.html"
std::string run_anchor(std::int64_t run);               // "run-12"

}  // namespace peakbench::site
