// A static site from a history: index, a page a trend, runs, reports, the latest comparison.
//
// The same history makes the same bytes. Links are relative, names are safe, nothing is loaded from
// a network: any static host will do, and so does a disk.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "reports/history/history.h"

namespace peakbench::site {

struct Options {
  std::string output_directory;            // created where it is missing
  std::string branch;                      // empty: the history's default
  std::string title;                       // empty: "Peakbench"
  std::int64_t reports = 30;               // runs with a report of their own, the newest
  std::string template_directory;          // the user's: each file in it replaces ours
  std::string builtin_template_directory;  // holds site/ and html/
};

struct Published {
  std::string index;  // the page to open
  std::size_t written = 0, unchanged = 0, removed = 0;
  std::map<std::int64_t, std::string> left_out;  // runs that are damaged or cannot be read, and why
};

// Files that are there already with the same bytes are left alone. What an earlier publish wrote
// and this one does not is removed; anything else in the folder stays. A run that is damaged, or
// whose record cannot be read where a report is to be made of it, is left out. Throws ConfigError:
// no run on the branch, a template with an error (before anything is written), a folder that cannot
// be written, a file in the way that no publish wrote.
Published publish(const history::History& history, const Options& options);

}  // namespace peakbench::site
