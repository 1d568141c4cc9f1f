#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "records/run.h"
#include "reports/render/record.h"

namespace peakbench::reports {

// The library of the interactive charts.

struct ChartsView {
  PEAKBENCH_VIEW(text(script, "Its source"),
                 text(licence, "Its licence"));
};

// The chart library installed next to the templates; nullopt if Peakbench was built without it.
std::optional<ChartsView> charts_view(const std::string& builtin_template_directory);

// Reports of finished (or interrupted) runs: pure functions of records and templates to bytes, and
// one function that reads run files and writes the reports next to them.

struct ReportOptions {
  std::vector<std::string> formats{"html", "markdown"};
  std::string output_directory;    // created where it is missing
  bool is_in_run = false;          // a name in a run's folder by default: links are not followed
  std::string template_directory;  // the user's: each file in it replaces ours; empty = none
  std::string builtin_template_directory;  // holds html/ and markdown/
  bool charts = true;  // HTML: with the library of the interactive charts, where there is one
};

// Reads the runs (run.json or its folder) and writes index.html, report.md and the pictures of
// report.md. Returns the paths written, the report to open first. Nothing is written before
// everything is rendered. A file that another program wrote or that was edited is never replaced
// (base/own_file.h).
//
// Throws ConfigError for such a file, an unknown format, a template with an unknown field (file and
// line), or a folder that cannot be written. Throws RunFileError for a run file that cannot be
// read.
std::vector<std::string> write_reports(const std::vector<std::string>& run_paths,
                                       const ReportOptions& options);

// Checks everything that can be known before there is a run to report. Throws ConfigError: no
// template folder, a page in the output folder that must not be replaced, or a link as the output
// folder inside a run's folder.
void check_report(const ReportOptions& options);

// The same without touching the output folder: file name -> bytes. `folders` are the runs' own
// folders, where traces are looked for; an empty one means that the run has no traces.
std::map<std::string, std::string> render(const std::vector<records::Run>& runs,
                                          const std::vector<std::string>& folders,
                                          const ReportOptions& options);

// The answer for a terminal of `width` columns, in UTF-8; a narrow one gets fewer columns. Ends
// with a newline.
// `folder`: the run's, for the main findings about programs, from their traces; empty: none.
std::string main_table(const records::Run& run, int width, const std::string& folder = "");

// A run's table for spreadsheets and data frames.

// A row a case, with the names of run.json: setting, outcome, peaks and their categories, times,
// how far the figures can be relied on, the promise. `run` is the title of its run.
std::string cases_csv(const std::vector<records::Run>& runs);

}  // namespace peakbench::reports
