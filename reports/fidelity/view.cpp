#include "reports/fidelity/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/fidelity/table.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "result/device.h"
#include "trace/lifetimes.h"

namespace peakbench::fidelity {
namespace {

using reports::printable;

constexpr double kClose = 0.0001;

std::string count(std::size_t number) {
  return reports::grouped(static_cast<std::int64_t>(number));
}

// "+0.0023", "−12.3": enough digits to tell 0.01% from nothing.
std::string signed_percent(double fraction) {
  const double percent = fraction * 100;
  const int decimals = std::abs(percent) < 0.1 ? 4 : std::abs(percent) < 10 ? 2 : 1;
  const auto digits = fmt::format("{:.{}f}", std::abs(percent), decimals);
  if (percent == 0) return "0";
  return (percent < 0 ? "\u2212" : "+") + digits;
}

std::string versions_text(const std::map<std::string, std::string>& versions) {
  std::string text;
  for (const auto& [name, version] : versions)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  return text;
}

std::string without_full_stop(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  return text;
}

FigureView figure_view(const Record& record) {
  const auto& figure = record.figure;
  FigureView view;
  view.card = printable(result::recorded_device(figure.device).card);
  view.configuration = printable(configuration_of(record));
  view.metric = reports::spaced(figure.metric.substr(std::string("peak_").size()));
  view.published = figure.unit == "bytes"
                       ? reports::grouped(static_cast<std::int64_t>(figure.value))
                       : reports::plain_number(figure.value);
  view.unit = printable(figure.unit);
  view.grade = reports::spaced(figure.grade);
  view.note = printable(figure.note);
  view.versions = printable(versions_text(figure.versions));
  view.reason = printable(record.reason);
  if (!record.emulated) return view;
  view.measured = true;
  view.bytes = reports::grouped(record.emulated->bytes);
  view.difference = signed_percent(difference(record));
  view.cause = cause_of(record);
  view.differs = !view.cause.empty();
  view.within_rounding = !view.differs && std::abs(difference(record)) > kAgreement;
  view.explanation = printable(without_full_stop(figure.explanation));
  view.phase = reports::phase_label(record.emulated->phase);
  view.at_peak = printable(record.emulated->at_peak);
  view.verdict = printable(record.emulated->verdict);
  view.our_versions = printable(versions_text(record.emulated->versions));
  view.date = printable(record.emulated->date);
  return view;
}

using Chosen = std::vector<const Record*>;

std::string largest_of(const Chosen& records) {
  const auto size = [](const Record* record) { return std::abs(difference(*record)); };
  const auto largest = std::ranges::max_element(records, {}, size);
  return largest == records.end() ? "" : signed_percent(difference(**largest));
}

GradeView grade_view(const std::string& grade, const Chosen& records) {
  std::size_t close = 0, agree = 0, rounded = 0;
  for (const Record* record : records) {
    const double size = std::abs(difference(*record));
    close += size <= kClose;
    agree += size <= kAgreement;
    rounded += size > kAgreement && is_within_rounding(*record);
  }
  return {.grade = grade,
          .figures = count(records.size()),
          .close = count(close),
          .agree = count(agree),
          .rounded = count(rounded),
          .differ = count(records.size() - agree - rounded),
          .largest = largest_of(records)};
}

template <typename Test>
Chosen measured(const Records& records, Test test) {
  Chosen chosen;
  for (const auto& record : records.records)
    if (record.emulated && test(record)) chosen.push_back(&record);
  return chosen;
}

std::vector<GradeView> grade_views(const Records& records) {
  std::vector<GradeView> views;
  for (const char* grade : result::kGrades) {
    const auto of_grade =
        measured(records, [&](const Record& record) { return record.figure.grade == grade; });
    if (!of_grade.empty()) views.push_back(grade_view(reports::spaced(grade), of_grade));
  }
  views.push_back(grade_view("all", measured(records, [](const Record&) { return true; })));
  return views;
}

std::vector<CauseView> cause_views(const Records& records) {
  std::vector<CauseView> views;
  for (const char* cause : result::kCauses) {
    const auto of_cause =
        measured(records, [&](const Record& record) { return cause_of(record) == cause; });
    if (!of_cause.empty())
      views.push_back(
          {.cause = cause, .figures = count(of_cause.size()), .largest = largest_of(of_cause)});
  }
  return views;
}

std::vector<SourceView> source_views(const Records& records) {
  std::vector<SourceView> views;
  for (const auto& record : records.records) {
    const auto name = printable(record.figure.source);
    auto at = std::ranges::find(views, name, &SourceView::name);
    if (at == views.end())
      at = views.insert(at, {.name = name, .url = reports::web_address(record.figure.url)});
    const auto view = figure_view(record);
    (view.measured ? at->figures : at->not_measured).push_back(view);
    if (view.differs) at->differing.push_back(view);
  }
  return views;
}

}  // namespace

PageView page_view(const Records& records) {
  PageView view;
  std::set<std::string> names, dates;
  std::size_t outside_step = 0;
  const auto all = measured(records, [](const Record&) { return true; });
  for (const Record* record : all) {
    names.insert(record->figure.source);
    dates.insert(printable(record->emulated->date));
    const auto& phase = record->emulated->phase;
    outside_step += !phase.empty() && phase != trace::to_string(trace::Phase::kOptimizerStep);
  }
  view.figures = count(all.size());
  view.source_count = count(names.size());
  if (!dates.empty())
    view.dates = *dates.begin() + (dates.size() > 1 ? " to " + *dates.rbegin() : "");
  view.outside_step = count(outside_step);
  view.grades = grade_views(records);
  view.causes = cause_views(records);
  view.sources = source_views(records);
  for (const auto& left : records.not_rebuilt)
    view.not_rebuilt.push_back({.source = printable(left.source),
                                .url = reports::web_address(left.url),
                                .figures = reports::grouped(left.figures),
                                .reason = printable(left.reason)});
  return view;
}

}  // namespace peakbench::fidelity
