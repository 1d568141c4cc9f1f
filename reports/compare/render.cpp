#include "reports/compare/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "files/own_file.h"
#include "reports/compare/overlay.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "reports/report/report.h"
#include "result/run_paths.h"
#include "trace/trace_file.h"

namespace peakbench::compare {
namespace {

using analysis::Source;

namespace fs = std::filesystem;
using nlohmann::json;

// A page stays small enough to be opened: cases beyond this have figures and no chart.
constexpr std::size_t kCharts = 12, kWholeTraces = 8'000'000, kAnyTraces = 24'000'000;
constexpr std::size_t kMostMarkdown = 60'000;  // bytes; GitHub: 65,536 characters
constexpr int kTextWidth = 100;

const result::CaseResult* find_case(const result::Run& run, const std::string& id) {
  const auto at = std::find_if(run.cases.begin(), run.cases.end(),
                               [&](const auto& one) { return one.spec.id == id; });
  return at == run.cases.end() ? nullptr : &*at;
}

// nullopt without a trace that can be read: growth_note has said so already.
std::optional<reports::CaseAnatomy> anatomy_of(const Source& source, const std::string& id,
                                               bool with_data, bool whole) {
  const auto* result = find_case(source.run, id);
  if (!result || source.folder.empty() || !result::has_trace(*result)) return std::nullopt;
  try {
    const auto path = result::trace_file(*result, source.folder);
    return reports::analyse(trace::read_trace(path), with_data, whole);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

// Adds timelines to the cases whose memory changed, as far as there is room.
void add_charts(const Source& base, const Source& now, const Comparison& comparison,
                bool interactive, json& view) {
  std::size_t drawn = 0, used = 0;
  for (auto& one : view["changed"]) {
    const auto at = std::find_if(
        comparison.cases.begin(), comparison.cases.end(), [&](const CaseComparison& candidate) {
          return reports::printable(candidate.id) == one["id"].get<std::string>();
        });
    if (at == comparison.cases.end() || at->memory == Verdict::kSame || drawn == kCharts) continue;
    const bool data = interactive && used < kAnyTraces, whole = used < kWholeTraces;
    const auto of_base = anatomy_of(base, at->id, data, whole),
               of_now = anatomy_of(now, at->id, data, whole);
    if (!of_base || !of_now) continue;
    ++drawn;
    one["overlay"] = overlay_view(*of_base, *of_now);
    if (!data) continue;
    used += of_base->data.size() + of_now->data.size();
    const auto anchor = one["anchor"].get<std::string>();
    one["rows"] = {{{"anchor", anchor + "-new"}, {"strategy", "NEW"}, {"data", of_now->data}},
                   {{"anchor", anchor + "-base"}, {"strategy", "BASE"}, {"data", of_base->data}}};
    one["has_data"] = true;
  }
}

std::string bytes_of_format(const std::string& format, const Source& base, const Source& now,
                            const Comparison& comparison, const PageOptions& options) {
  if (format == "html") return render_html(base, now, comparison, options);
  if (format == "markdown") return render_markdown(comparison, options);
  if (format == "text") return to_text(comparison, kTextWidth);
  const auto all = options.json.is_null() ? to_json(comparison) : options.json;
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

const char* file_of(const std::string& format) {
  if (format == "html") return "comparison.html";
  if (format == "markdown") return "comparison.md";
  if (format == "json") return "comparison.json";
  if (format == "text") return "comparison.txt";
  throw ConfigError(fmt::format(
      "Unknown format \"{}\" of a comparison; there are html, markdown, json and text.", format));
}

}  // namespace

std::string render_markdown(const Comparison& comparison, const PageOptions& options) {
  const reports::Templates templates(options.template_directory,
                                     options.builtin_template_directory);
  auto shorter = options;
  for (;; shorter.most_cases /= 2) {
    const auto view = reports::complete(make_view(comparison, shorter), comparison_fields());
    auto text = templates.render("markdown/comparison.md.mustache", view, comparison_fields(),
                                 reports::Escape::kMarkdown);
    if (text.size() <= kMostMarkdown || shorter.most_cases == 0) return text;
  }
}

std::string render_html(const Source& base, const Source& now, const Comparison& comparison,
                        const PageOptions& options) {
  const reports::Templates templates(options.template_directory,
                                     options.builtin_template_directory);
  auto view = make_view(comparison, options);
  const auto charts = reports::charts_view(options.builtin_template_directory);
  add_charts(base, now, comparison, charts.is_object(), view);
  view["charts"] = charts;
  return templates.render("html/comparison.html.mustache",
                          reports::complete(view, comparison_fields()), comparison_fields(),
                          reports::Escape::kHtml);
}

std::vector<std::string> write_pages(const Source& base, const Source& now,
                                     const Comparison& comparison, const PageOptions& options) {
  std::vector<std::string> names, pages, written;
  for (const auto& format : options.formats) {
    names.emplace_back(file_of(format));
    pages.push_back(bytes_of_format(format, base, now, comparison, options));
  }
  files::refuse_strangers(options.output_directory, names);
  files::make_folder(options.output_directory);
  files::remove_unfinished(options.output_directory, names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    written.push_back((fs::path(options.output_directory) / names[i]).string());
    files::write_file_atomically(written.back(), files::marked(names[i], pages[i]));
  }
  return written;
}

}  // namespace peakbench::compare
