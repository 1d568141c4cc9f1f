#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reports/trends/history.h"

namespace peakbench::trends {

// A static site from a history: index, a page a trend, runs, reports, the latest comparison.
//
// The same history makes the same bytes. Links are relative, names are safe, nothing is loaded from
// a network: any static host will do, and so does a disk.

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

// Publishes the history as a site. Unchanged files are left alone. Files of an earlier publish that
// are no longer part of it are removed; other files in the folder stay. A damaged run is left out,
// and so is a run whose record is needed for a report and cannot be read.
//
// Throws ConfigError: no run on the branch, a template with an error (before anything is written),
// a folder that cannot be written, a file of another origin in the way.
Published publish(const History& history, const Options& options);

// docs/reference/site_fields.md: what the site's templates may use; a test keeps both equal.

std::string fields_as_markdown();

// The folder of a site: what was written there, and by whom. For this module alone.

struct Page {
  std::string name;                    // relative, with slashes
  std::function<std::string()> bytes;  // made when it is written: a site need not fit into memory
};

inline constexpr const char* kManifest = "peakbench-site.json";

// Writes the pages, and removes those of an earlier publish that are no more. The manifest names
// every page before the first is written, so that a publish that was killed is taken up by the
// next.
Published write_pages(const std::string& directory, const std::vector<Page>& pages);

}  // namespace peakbench::trends
