#include "reports/compare/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/json.h"
#include "base/own_file.h"
#include "records/run_files.h"
#include "reports/compare/compare.h"
#include "reports/compare/overlay.h"
#include "reports/compare/view.h"
#include "reports/render/template.h"
#include "reports/render/text.h"
#include "trace/trace_file.h"

namespace peakbench::compare {
// A comparison for machines. Fields: docs/how-to/compare.md.

namespace {

using Json = nlohmann::ordered_json;

template <typename Item, typename Make>
Json list(const std::vector<Item>& items, Make make) {
  auto all = Json::array();
  for (const auto& item : items) all.push_back(make(item));
  return all;
}

Json side_json(const Side& side) {
  return {{"label", side.label},     {"title", side.title},
          {"created", side.created}, {"commit", side.commit},
          {"status", side.status},   {"schema_version", side.schema_version}};
}

Json change_json(const Change& change) {
  return {{"name", change.name},
          {"base", change.base},
          {"new", change.now},
          {"cases", change.cases},
          {"setting", change.is_setting}};
}

Json measure_json(const Measure& measure) {
  return {{"where", measure.where},           {"space", measure.space},
          {"figure", measure.figure},         {"base_bytes", measure.base},
          {"new_bytes", measure.now},         {"difference_bytes", measure.now - measure.base},
          {"allowed_bytes", measure.allowed}, {"verdict", to_string(measure.direction)},
          {"held", measure.is_held}};
}

Json category_json(const CategoryChange& change) {
  return {{"category", change.category},
          {"base_bytes", change.base},
          {"new_bytes", change.now},
          {"difference_bytes", change.now - change.base}};
}

Json part_json(const Growth& part) {
  return {{"requested_difference_bytes", part.requested_bytes},
          {"allocated_difference_bytes", part.block_bytes},
          {"category", part.category},
          {"allocated_in", part.allocated_in},
          {"module", part.module},
          {"operator", part.op}};
}

Json appeared_json(const Appeared& one) {
  return {{"count", one.count},
          {"requested_bytes", one.requested_bytes},
          {"allocated_bytes", one.block_bytes},
          {"category", one.category},
          {"allocated_in", one.allocated_in},
          {"module", one.module},
          {"operator", one.op},
          {"name", one.name},
          {"shape", one.shape},
          {"dtype", one.dtype}};
}

Json held_json(const analysis::Held& held) {
  return {{"tensors", held.tensors},
          {"requested_bytes", held.requested_bytes},
          {"allocated_bytes", held.block_bytes},
          {"dtypes", held.dtypes}};
}

Json cause_json(const analysis::Cause& cause) {
  return {{"where", cause.where},
          {"operator", cause.op},
          {"requested_difference_bytes", cause.requested_difference()},
          {"allocated_difference_bytes", cause.block_difference()},
          {"base", held_json(cause.base)},
          {"new", held_json(cause.now)}};
}

Json category_causes_json(const analysis::CategoryCauses& category) {
  return {{"category", category.category},
          {"requested_difference_bytes", category.requested_difference},
          {"allocated_difference_bytes", category.block_difference},
          {"causes", list(category.causes, cause_json)}};
}

Json growth_json(const PhaseGrowth& growth) {
  return {{"phase", growth.phase},
          {"base_phase", growth.base_phase},
          {"verdict", to_string(growth.direction)},
          {"requested_difference_bytes", growth.requested_bytes},
          {"allocated_difference_bytes", growth.block_bytes},
          {"causes", list(growth.causes, category_causes_json)},
          {"parts", list(growth.parts, part_json)},
          {"appeared", list(growth.appeared, appeared_json)}};
}

Json figures_json(const VerdictChange& change) {
  return {{"base", change.base},
          {"new", change.now},
          {"verdict", to_string(change.direction)},
          {"reason", change.reason}};
}

Json speed_json(const Speed& speed) {
  const auto& difference = speed.difference;
  return {{"base_median_ns", speed.base_ns},
          {"new_median_ns", speed.now_ns},
          {"verdict", to_string(difference.direction)},
          {"samples", difference.samples},
          {"ratio", finite_or_name(difference.ratio)},
          {"low", finite_or_name(difference.low)},
          {"high", finite_or_name(difference.high)},
          {"more_samples", difference.more ? Json(*difference.more) : Json(nullptr)},
          {"reason", difference.reason}};
}

Json finding_json(const FindingChange& finding) {
  return {{"is_new", finding.is_new}, {"kind", finding.kind}, {"sentence", finding.sentence}};
}

Json case_json(const CaseComparison& one) {
  Json json{{"id", one.id},
            {"slug", one.slug},
            {"emulated", one.emulated},
            {"state", to_string(one.state)},
            {"base_status", one.base_status},
            {"new_status", one.now_status},
            {"reason", one.reason}};
  const bool compared = one.state == CaseState::kCompared;
  json["memory"] = nullptr;
  if (compared)
    json["memory"] = {{"verdict", to_string(one.memory)},
                      {"figures", list(one.measures, measure_json)},
                      {"categories", list(one.categories, category_json)},
                      {"at_peak", one.at_peak ? growth_json(*one.at_peak) : Json(nullptr)},
                      {"growth", list(one.growth, growth_json)},
                      {"growth_note", one.growth_note},
                      {"findings", list(one.findings, finding_json)}};
  json["figures"] = one.verdict ? figures_json(*one.verdict) : Json(nullptr);
  json["throughput"] = one.speed ? speed_json(*one.speed) : Json(nullptr);
  return json;
}

Json counts_json(const Comparison& comparison) {
  auto states = Json::object();
  for (const auto state :
       {CaseState::kCompared, CaseState::kNew, CaseState::kMissing, CaseState::kFailed,
        CaseState::kStillFailed, CaseState::kRecovered, CaseState::kRefused})
    states[to_string(state)] = count(comparison, state);
  auto memory = Json::object(), throughput = Json::object();
  for (const auto direction : {Direction::kWorse, Direction::kBetter, Direction::kSame})
    memory[to_string(direction)] = count_memory(comparison, direction);
  for (const auto direction :
       {Direction::kWorse, Direction::kBetter, Direction::kSame, Direction::kUnknown})
    throughput[to_string(direction)] = count_speed(comparison, direction);
  return {{"cases", states}, {"memory", memory}, {"throughput", throughput}};
}

}  // namespace

std::string to_csv(const Comparison& comparison) {
  auto rows = Json::array();
  for (const auto& one : comparison.cases) {
    const Json of_case{{"id", one.id},
                       {"state", to_string(one.state)},
                       {"base_status", one.base_status},
                       {"new_status", one.now_status}};
    for (const auto& measure : one.measures) {
      rows.push_back(of_case);
      rows.back().update(measure_json(measure));
    }
    if (one.measures.empty()) rows.push_back(of_case);
  }
  return csv_text(rows);
}

nlohmann::ordered_json to_json(const Comparison& comparison) {
  return {{"schema_version", kComparisonSchemaVersion},
          {"base", side_json(comparison.base)},
          {"new", side_json(comparison.now)},
          {"policy", records::to_json(comparison.policy)},
          {"counts", counts_json(comparison)},
          {"changes", list(comparison.changes, change_json)},
          {"incomparable", comparison.incomparable},
          {"notes", comparison.notes},
          {"cases", list(comparison.cases, case_json)}};
}

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A page stays small enough to be opened: cases beyond this have figures and no chart.
constexpr std::size_t kCharts = 12, kWholeTraces = 8'000'000, kAnyTraces = 24'000'000;
constexpr std::size_t kMostMarkdown = 60'000;  // bytes; GitHub: 65,536 characters
constexpr int kTextWidth = 100;

// nullopt without a trace that can be read: growth_note has said so already.
std::optional<reports::CaseAnatomy> anatomy_of(const Source& source, const std::string& id,
                                               bool with_data, bool whole) {
  const auto* result = records::find_case(source.run, id);
  if (!result || source.folder.empty() || !records::has_trace(*result)) return std::nullopt;
  try {
    const auto path = records::trace_file(*result, source.folder);
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
    const auto at = std::ranges::find_if(comparison.cases, [&](const CaseComparison& candidate) {
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
