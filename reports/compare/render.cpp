#include "reports/compare/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "files/own_file.h"
#include "json/json_text.h"
#include "reports/compare/overlay.h"
#include "reports/compare/view.h"
#include "reports/render/soft_breaks.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
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

// nullopt without a trace that can be read: growth_note has said so already.
std::optional<reports::CaseAnatomy> anatomy_of(const Source& source, const std::string& id,
                                               bool with_data, bool whole) {
  const auto* result = result::find_case(source.run, id);
  if (!result || source.folder.empty() || !result::has_trace(*result)) return std::nullopt;
  try {
    const auto path = result::trace_file(*result, source.folder);
    return reports::analyse(trace::read_trace(path), with_data, whole);
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

// Adds timelines to the cases whose memory changed, as far as there is room; with their data for
// the library of the interactive chart, where the view has it.
void add_charts(const Source& base, const Source& now, const Comparison& comparison,
                ComparisonView& view) {
  std::size_t drawn = 0, used = 0;
  for (CaseView& one : view.changed) {
    const auto at = std::find_if(comparison.cases.begin(), comparison.cases.end(),
                                 [&](const CaseComparison& candidate) {
                                   return reports::printable(candidate.id) == one.id;
                                 });
    if (at == comparison.cases.end() || at->memory == Direction::kSame || drawn == kCharts)
      continue;
    const bool data = view.charts && used < kAnyTraces, whole = used < kWholeTraces;
    const auto of_base = anatomy_of(base, at->id, data, whole),
               of_now = anatomy_of(now, at->id, data, whole);
    if (!of_base || !of_now) continue;
    ++drawn;
    one.overlay = overlay_view(*of_base, *of_now);
    if (!data) continue;
    used += of_base->data.size() + of_now->data.size();
    one.rows = {{one.anchor + "-new", "NEW", of_now->data},
                {one.anchor + "-base", "BASE", of_base->data}};
  }
}

std::string bytes_of_format(const std::string& format, const Source& base, const Source& now,
                            const Comparison& comparison, const PageOptions& options) {
  if (format == "html") return render_html(base, now, comparison, options);
  if (format == "markdown") return render_markdown(comparison, options);
  if (format == "text") return to_text(comparison, kTextWidth);
  const auto all = options.json.is_null() ? to_json(comparison) : options.json;
  return json_text(all);
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
    auto text = templates.render("markdown/comparison.md.mustache", make_view(comparison, shorter),
                                 reports::Escape::kMarkdown);
    if (text.size() <= kMostMarkdown || shorter.most_cases == 0) return text;
  }
}

std::string render_html(const Source& base, const Source& now, const Comparison& comparison,
                        const PageOptions& options) {
  const reports::Templates templates(options.template_directory,
                                     options.builtin_template_directory);
  auto view = make_view(comparison, options);
  view.charts = reports::charts_view(options.builtin_template_directory);
  add_charts(base, now, comparison, view);
  return reports::with_soft_breaks(
      templates.render("html/comparison.html.mustache", view, reports::Escape::kHtml));
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
