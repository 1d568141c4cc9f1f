#include "reports/run/report.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/own_file.h"
#include "records/case_json.h"
#include "records/run.h"
#include "records/run_files.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "reports/run/view.h"

namespace peakbench::reports {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

constexpr const char *kHtmlFile = "index.html", *kMarkdownFile = "report.md";

void render_pictures(const Templates& templates, const GroupView& group, const Shown& shown,
                     Files& files) {
  const std::pair<const char*, std::string> pictures[] = {
      {"markdown/peak.svg.mustache", group.peak_picture},
      {"markdown/timeline.svg.mustache", group.timeline_picture},
      {"markdown/flame.svg.mustache", group.flame_picture},
      {"markdown/pareto.svg.mustache", group.pareto_picture}};
  for (const auto& [looks, name] : pictures)
    if (!name.empty()) files[name] = templates.render(looks, shown, Escape::kHtml);
}

bool wants(const ReportOptions& options, const char* format) {
  return std::ranges::find(options.formats, format) != options.formats.end();
}

std::vector<std::string> names_of(const Files& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) names.push_back(name);
  return names;
}

// What is written is not put among anybody's files.
void refuse_places(const ReportOptions& options, const std::vector<std::string>& names) {
  std::error_code ignored;
  if (options.is_in_run && fs::is_symlink(fs::symlink_status(options.output_directory, ignored)))
    files::refuse_link(options.output_directory);
  files::refuse_strangers(options.output_directory, names);
}

}  // namespace

// reports/CMakeLists.txt puts it there.
std::optional<ChartsView> charts_view(const std::string& builtin_template_directory) {
  const fs::path folder = fs::path(builtin_template_directory).parent_path() / "charts";
  const std::string script = files::text_of((folder / "d3.js").string());
  if (script.empty() || script.find("</script") != std::string::npos) return std::nullopt;
  return ChartsView{script, files::text_of((folder / "licence.txt").string())};
}

std::map<std::string, std::string> render(const std::vector<records::Run>& runs,
                                          const std::vector<std::string>& folders,
                                          const ReportOptions& options) {
  const Templates templates(options.template_directory, options.builtin_template_directory);
  const bool interactive = options.charts && wants(options, "html");
  auto charts = interactive ? charts_view(options.builtin_template_directory) : std::nullopt;
  const Anatomies anatomies = read_anatomies(runs, folders, charts.has_value());
  ReportView view = make_view(runs, anatomies);
  view.charts = std::move(charts);
  for (std::size_t i = 0; i < folders.size(); ++i)
    if (const auto grid = records::read_fit_grid(folders[i]);
        grid && records::is_of(*grid, runs[i]))
      view.fits.push_back(
          fit_view(*grid, view.fits.size(), view.several_runs ? printable(runs[i].title) : ""));
  const Shown shown(view);
  Files files;
  for (const std::string& format : options.formats) {
    if (format == "html") {
      files[kHtmlFile] =
          with_soft_breaks(templates.render("html/index.html.mustache", shown, Escape::kHtml));
    } else if (format == "markdown") {
      files[kMarkdownFile] =
          templates.render("markdown/report.md.mustache", shown, Escape::kMarkdown);
      for (std::size_t i = 0; i < view.groups.size(); ++i)
        render_pictures(templates, view.groups[i], shown.item<GroupView>("groups", i), files);
    } else {
      throw ConfigError("Unknown report format `" + format + "`; there are html and markdown.");
    }
  }
  return files;
}

void check_report(const ReportOptions& options) {
  const Templates templates(options.template_directory, options.builtin_template_directory);
  refuse_places(options, {kHtmlFile, kMarkdownFile});
}

std::vector<std::string> write_reports(const std::vector<std::string>& run_paths,
                                       const ReportOptions& options) {
  std::vector<records::Run> runs;
  std::vector<std::string> folders;
  for (const std::string& path : run_paths) {
    runs.push_back(records::read_run(path));
    folders.push_back(records::run_folder_of(path));
  }
  const Files files = render(runs, folders, options);
  const fs::path target(options.output_directory);
  refuse_places(options, names_of(files));
  files::make_folder(target.string());
  files::remove_unfinished(target.string(), names_of(files));
  std::vector<std::string> written;
  for (const auto& [name, bytes] : files) {
    // Of pictures there may be thousands, and the run makes them again.
    const bool durable = !name.ends_with(".svg");
    files::write_file_atomically((target / name).string(), files::marked(name, bytes), durable);
    const bool first = name == kHtmlFile || (name == kMarkdownFile && files.count(kHtmlFile) == 0);
    written.insert(first ? written.begin() : written.end(), (target / name).string());
  }
  return written;
}

namespace {

using Json = nlohmann::ordered_json;

void erase(Json& object, std::initializer_list<const char*> names) {
  if (!object.is_object()) return;
  for (const auto* name : names) object.erase(name);
}

// Without what has a row of its own elsewhere (traces, ranks) or is the same in all of them.
Json row_of(const records::Run& run, const records::CaseResult& result) {
  Json row{{"run", run.title}};
  row.update(to_json(result));
  erase(row, {"losses", "ranks", "plugins", "settings", "environment", "emulation"});
  erase(row["memory"], {"phases", "spaces"});
  erase(row["throughput"], {"step_times_ns", "rounds"});
  erase(row["work"], {"phases", "flops_by_precision", "without_formula"});
  if (row["work"].is_object()) erase(row["work"]["bound"], {"flops_per_second"});
  const auto* verdict = records::verdict_of(result);
  row["figures"] = verdict == nullptr ? Json() : Json(verdict_word(verdict->kind));
  return row;
}

}  // namespace

std::string cases_csv(const std::vector<records::Run>& runs) {
  Json rows = Json::array();
  for (const auto& run : runs)
    for (const auto& result : run.cases) rows.push_back(row_of(run, result));
  return csv_text(rows);
}

}  // namespace peakbench::reports
