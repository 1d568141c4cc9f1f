#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "errors/errors.h"
#include "reports/render/soft_breaks.h"
#include "reports/render/template.h"
#include "reports/report/report.h"
#include "reports/site/folder.h"
#include "reports/site/index_view.h"
#include "reports/site/latest_comparison.h"
#include "reports/site/names.h"
#include "reports/site/runs_view.h"
#include "reports/site/trend_view.h"

namespace peakbench::site {
namespace {

using history::History;
using reports::Escape;
using reports::Templates;

// Why the run cannot be shown; empty where it can.
std::string problem_of(const History& history, std::int64_t number, bool with_report) {
  if (!history.has_sound_labels(number)) return "damaged: its labels";
  if (!with_report) return "";
  try {
    history.record(number);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

// The runs that are shown, the newest first; the others are noted in `runs`. Those that get a
// report are noted in `contents`.
void choose_runs(const History& history, const Options& options, Contents& contents,
                 history::Runs& runs) {
  for (auto& run : history.runs({})) {
    const bool with_report = run.labels.branch == contents.branch &&
                             static_cast<std::int64_t>(contents.reports.size()) < options.reports;
    if (const auto why = problem_of(history, run.number, with_report); !why.empty()) {
      runs.leave_out(run.number, why);
      continue;
    }
    if (with_report) contents.reports.insert(run.number);
    runs.keep(run);
    contents.runs.push_back(std::move(run));
  }
}

Contents contents_of(const History& history, const Options& options, history::Runs& runs) {
  Contents contents;
  contents.title = options.title.empty() ? "Peakbench" : options.title;
  contents.branch = options.branch.empty() ? history.default_branch() : options.branch;
  choose_runs(history, options, contents, runs);
  std::map<std::string, std::string> newest;  // branch -> created
  for (std::size_t place = contents.runs.size(); place-- > 0;) {
    const auto& run = contents.runs[place];
    contents.places[run.number] = place;
    auto& before = newest[run.labels.branch];
    if (run.created < before) contents.clocks_back.insert(run.number);
    before = run.created;
  }
  return contents;
}

[[noreturn]] void nothing_to_publish(const History& history, const std::string& branch,
                                     const history::Runs& runs) {
  if (!runs.notes().empty())
    throw ConfigError(
        fmt::format("{}: no run on branch \"{}\" can be read; `peakbench history "
                    "check` says what is wrong",
                    history.path(), branch));
  const auto branches = history.branches();
  if (branches.empty())
    throw ConfigError(
        fmt::format("{}: it holds no run yet: there is nothing to publish; `peakbench history add "
                    "RUN` adds one",
                    history.path()));
  throw ConfigError(fmt::format("{}: no run on branch \"{}\"; there are: {}", history.path(),
                                branch, fmt::join(branches, ", ")));
}

// Everything that pages are made of; they are made one at a time.
class Site {
 public:
  Site(const History& history, const Options& options)
      : history_(history),
        options_(options),
        templates_(options.template_directory, options.builtin_template_directory),
        runs_(history),
        contents_(contents_of(history, options, runs_)) {
    read_recent();
    if (recent_.empty()) nothing_to_publish(history, contents_.branch, runs_);
    compare_latest();
  }

  std::vector<Page> pages() {
    std::vector<Page> pages{
        {"style.css", [this] { return style(); }},
        {"index.html", [this] { return page("index", index_view(contents_, recent_)); }}};
    for (const auto& series : contents_.series)
      pages.push_back({trend_page(series), [this, &series] {
                         const auto trend = trend_of(history_, runs_, series, contents_.branch);
                         return page("trend", trend_view(contents_, series, trend));
                       }});
    for (std::size_t number = 1; number <= runs_pages(contents_); ++number)
      pages.push_back({runs_page(number),
                       [this, number] { return page("runs", runs_view(contents_, number)); }});
    for (const auto run : contents_.reports)
      pages.push_back({report_page(run), [this, run] { return report(run); }});
    if (contents_.comparison)
      pages.push_back({"compare/index.html", [this] { return *comparison_; }});
    return pages;
  }

  const std::map<std::int64_t, std::string>& left_out() const { return runs_.notes(); }

  // Errors of templates are found before the first page is written.
  void check_templates() const {
    page("index", IndexView());
    page("trend", TrendView());
    page("runs", RunsView());
    style();
    if (!contents_.reports.empty()) report(*contents_.reports.begin());
  }

 private:
  void compare_latest() {
    const auto pair = latest_pair(contents_);
    if (pair) comparison_ = comparison_page(history_, *pair, options_);
    contents_.comparison = comparison_.has_value();
  }

  void read_recent() {
    for (auto& series : history_.series()) {
      auto trend = trend_of(history_, runs_, series, contents_.branch,
                            static_cast<std::int64_t>(kSparkPoints));
      if (trend.empty()) continue;
      contents_.series.push_back(std::move(series));
      recent_.push_back(std::move(trend));
    }
  }

  template <typename View>
  std::string page(const std::string& name, const View& view) const {
    return reports::with_soft_breaks(
        templates_.render("site/" + name + ".html.mustache", view, Escape::kHtml));
  }

  // The reports' own looks, and what the site adds to them.
  std::string style() const {
    const auto text = [&](const char* name) {
      return templates_.render(name, IndexView(), Escape::kHtml);
    };
    return text("html/style.css") + text("site/site.css");
  }

  std::string report(std::int64_t run) const {
    reports::ReportOptions options;
    options.formats = {"html"};
    options.template_directory = options_.template_directory;
    options.builtin_template_directory = options_.builtin_template_directory;
    options.charts = false;  // there are no traces to draw
    return reports::render({history_.record(run)}, {""}, options).at("index.html");
  }

  const History& history_;
  const Options& options_;
  Templates templates_;
  history::Runs runs_;
  Contents contents_;
  std::vector<Trend> recent_;
  std::optional<std::string> comparison_;
};

}  // namespace

Published publish(const History& history, const Options& options) {
  Site site(history, options);
  site.check_templates();
  auto published = write_pages(options.output_directory, site.pages());
  published.left_out = site.left_out();
  return published;
}

}  // namespace peakbench::site
