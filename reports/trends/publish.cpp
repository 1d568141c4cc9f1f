#include "reports/trends/publish.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "reports/run/report.h"
#include "reports/trends/trend_view.h"
#include "reports/trends/views.h"

namespace peakbench::trends {
namespace {

using reports::Field;
using reports::fields_of;

void describe(const Field& parent, const std::string& path, std::string& out) {
  out += "\n#### " + path + "\n\n" + reports::table_of(parent);
  for (const Field& field : parent.fields)
    if (!field.fields.empty() && field.name != "site")
      describe(field, path + " `" + field.name + "`", out);
}

}  // namespace

std::string fields_as_markdown() {
  std::string out;
  describe(fields_of<SiteView>(), "On every page: `site`", out);
  describe(fields_of<IndexView>(), "index.html", out);
  describe(fields_of<TrendView>(), "trend.html", out);
  describe(fields_of<RunsView>(), "runs.html", out);
  return out;
}

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// A manifest may have been edited: nothing outside the folder is ever touched.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const auto& part : path)
    if (part == "..") return false;
  return true;
}

Names read_manifest(const fs::path& folder) {
  const auto path = folder / kManifest;
  if (!files::is_there(path.string())) return {};
  const auto json = files::read_json_file(path.string());
  try {
    const auto files = Fields(json).get<std::vector<std::string>>("files");
    Names names;
    for (const auto& name : files)
      if (is_inside(name)) names.insert(name);
    return names;
  } catch (const RunFileError& error) {
    throw ConfigError(
        fmt::format("{}: {}; delete it and the pages next to it to publish into this folder again",
                    path.string(), error.what()));
  }
}

std::string manifest_text(const Names& names) {
  const nlohmann::ordered_json json{
      {"about", "Files that `peakbench publish` wrote here, and may replace or remove"},
      {"files", names}};
  return json.dump(1) + "\n";
}

// A site can be made again: nothing waits for the disk.
void write_file(const fs::path& path, const std::string& bytes) {
  files::make_folder(path.parent_path().string());
  files::write_file_atomically(path.string(), bytes, false);
}

bool write_if_changed(const fs::path& path, const std::string& bytes) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == bytes.size() && files::text_of(path.string()) == bytes)
    return false;
  write_file(path, bytes);
  return true;
}

void refuse_strangers(const fs::path& folder, const std::vector<Page>& pages, const Names& ours) {
  for (const auto& page : pages)
    if (ours.count(page.name) == 0 && files::is_there((folder / page.name).string()))
      throw ConfigError(
          fmt::format("{}: is in the way, and was not written by `peakbench publish`. Move it, or "
                      "name another folder with --out",
                      (folder / page.name).string()));
}

// The folders that a removed page leaves empty go with it.
void remove_page(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  fs::remove(folder / name, ignored);
  for (auto parent = (folder / name).parent_path(); parent != folder; parent = parent.parent_path())
    if (!fs::remove(parent, ignored)) break;
}

}  // namespace

Published write_pages(const std::string& directory, const std::vector<Page>& pages) {
  const fs::path folder(directory);
  files::make_folder(folder.string());
  const Names before = read_manifest(folder);
  refuse_strangers(folder, pages, before);
  Names now, either = before;
  for (const auto& page : pages) now.insert(page.name);
  either.insert(now.begin(), now.end());
  if (either != before) write_file(folder / kManifest, manifest_text(either));
  Published published;
  for (const auto& page : pages)
    ++(write_if_changed(folder / page.name, page.bytes()) ? published.written
                                                          : published.unchanged);
  for (const auto& name : before) {
    if (now.count(name) != 0) continue;
    remove_page(folder, name);
    ++published.removed;
  }
  write_if_changed(folder / kManifest, manifest_text(now));
  published.index = (folder / "index.html").string();
  return published;
}

namespace {

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
void choose_runs(const History& history, const Options& options, Contents& contents, Runs& runs) {
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

Contents contents_of(const History& history, const Options& options, Runs& runs) {
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
                                     const Runs& runs) {
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
    comparison_ = comparison_page(history, contents_, options);
    contents_.comparison = comparison_.has_value();
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
  Runs runs_;
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

}  // namespace peakbench::trends
