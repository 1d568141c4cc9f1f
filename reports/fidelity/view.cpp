#include "reports/fidelity/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "reports/fidelity/table.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "result/device.h"
#include "trace/lifetimes.h"
#include "units/bytes.h"

namespace peakbench::fidelity {
namespace {

using reports::printable;

constexpr double kClose = 0.0001, kNear = 0.0005;

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

// A link with a fragment (#L12) names the row of a page.
bool names_a_row(const std::string& url) { return url.find('#') != std::string::npos; }

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
  if (!figure.printed.empty()) {
    view.published = printable(figure.printed);
    view.unit.clear();
  }
  view.grade = reports::spaced(figure.grade);
  if (names_a_row(figure.url)) view.row_url = reports::web_address(figure.url);
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
  view.is_bound = !view.verdict.empty() && !view.verdict.starts_with("exact");
  view.our_versions = printable(versions_text(record.emulated->versions));
  view.date = printable(record.emulated->date);
  return view;
}

using Chosen = std::vector<const Record*>;

double size_of(const Record* record) { return std::abs(difference(*record)); }

const Record* furthest(const Chosen& records) {
  const auto largest = std::ranges::max_element(records, {}, size_of);
  return largest == records.end() ? nullptr : *largest;
}

std::size_t within(const Chosen& records, double fraction) {
  return static_cast<std::size_t>(std::ranges::count_if(
      records, [&](const Record* record) { return size_of(record) <= fraction; }));
}

GradeView grade_view(const std::string& grade, const std::string& measures, const Chosen& records) {
  const auto agree = within(records, kAgreement);
  const auto rounded = static_cast<std::size_t>(std::ranges::count_if(records, [](const auto* one) {
    return size_of(one) > kAgreement && is_within_rounding(*one);
  }));
  const auto* largest = furthest(records);
  return {.grade = grade,
          .measures = measures,
          .figures = count(records.size()),
          .close = count(within(records, kClose)),
          .near = count(within(records, kNear)),
          .agree = count(agree),
          .rounded = count(rounded),
          .differ = count(records.size() - agree - rounded),
          .largest = largest == nullptr ? "" : signed_percent(difference(*largest))};
}

bool is_same_figure(const Record& a, const Record& b) {
  if (names_a_row(a.figure.url) && names_a_row(b.figure.url) && a.figure.url != b.figure.url)
    return false;
  return a.figure.source == b.figure.source && a.figure.device == b.figure.device &&
         a.figure.metric == b.figure.metric && a.measures == b.measures &&
         published_bytes(a.figure) == published_bytes(b.figure);
}

// One published figure, and the ways in which it was rebuilt: its publisher's own program before a
// case of ours. Figures of one source, card and kind with one value count once where no rows of
// their source tell them apart.
using Distinct = std::vector<Chosen>;

Distinct distinct_figures(const Records& records) {
  Distinct figures;
  for (const auto& record : records.records) {
    if (!record.emulated || record.figure.grade == result::kComputed) continue;
    const auto same = std::ranges::find_if(
        figures, [&](const Chosen& one) { return is_same_figure(*one.front(), record); });
    if (same == figures.end())
      figures.push_back({&record});
    else
      same->push_back(&record);
  }
  for (auto& one : figures)
    std::stable_partition(one.begin(), one.end(),
                          [](const Record* record) { return !record->program.empty(); });
  return figures;
}

template <typename Test>
Chosen chosen(const Distinct& figures, Test test) {
  Chosen found;
  for (const auto& one : figures)
    if (test(*one.front())) found.push_back(one.front());
  return found;
}

std::vector<GradeView> grade_views(const Distinct& figures) {
  std::vector<GradeView> views;
  for (const char* measures : kMeasures)
    for (const char* grade : result::kGrades) {
      const auto of_grade = chosen(figures, [&](const Record& record) {
        return record.measures == measures && record.figure.grade == grade;
      });
      if (!of_grade.empty())
        views.push_back(
            grade_view(reports::spaced(grade), reports::spaced(measures) + "s", of_grade));
    }
  views.push_back(grade_view("all", "", chosen(figures, [](const Record&) { return true; })));
  return views;
}

std::size_t kinds_of_card(const Chosen& records) {
  std::set<std::string> cards;
  for (const Record* record : records) {
    const auto card = result::recorded_device(record->figure.device).card;
    cards.insert(card.substr(0, card.find(',')));
  }
  return cards.size();
}

// One publisher on one machine can be right or wrong throughout: the others are counted apart.
void add_largest_source(SummaryView& view, const std::map<std::string, Chosen>& by_source) {
  const auto most = std::ranges::max_element(
      by_source, {}, [](const auto& source) { return source.second.size(); });
  view.most = count(most->second.size());
  view.most_source = printable(most->first);
  view.most_cards = count(kinds_of_card(most->second));
  if (by_source.size() == 1) return;
  Chosen others;
  for (const auto& [source, records] : by_source)
    if (source != most->first) others.insert(others.end(), records.begin(), records.end());
  view.others = count(others.size());
  view.others_close = count(within(others, kClose));
  view.others_near = count(within(others, kNear));
  view.others_agree = count(within(others, kAgreement));
}

std::vector<SummaryView> summary_of(const Distinct& figures) {
  const auto steps = chosen(figures, [](const Record& record) {
    return record.measures == kTrainingStep && record.figure.grade == result::kGrades[0];
  });
  if (steps.empty()) return {};
  std::map<std::string, Chosen> by_source;
  for (const Record* record : steps) by_source[record->figure.source].push_back(record);
  const auto* largest = furthest(steps);
  SummaryView view;
  view.figures = count(steps.size());
  view.sources = count(by_source.size());
  view.cards = count(kinds_of_card(steps));
  view.close = count(within(steps, kClose));
  view.near = count(within(steps, kNear));
  view.agree = count(within(steps, kAgreement));
  view.largest = signed_percent(difference(*largest));
  view.largest_of = printable(name_of(*largest));
  view.largest_cause = size_of(largest) > kAgreement && is_within_rounding(*largest)
                           ? "within its last digit"
                           : cause_of(*largest);
  add_largest_source(view, by_source);
  return {view};
}

std::vector<CauseView> cause_views(const Distinct& figures) {
  std::vector<CauseView> views;
  for (const char* cause : result::kCauses) {
    const auto of_cause =
        chosen(figures, [&](const Record& record) { return cause_of(record) == cause; });
    if (!of_cause.empty())
      views.push_back({.cause = cause,
                       .figures = count(of_cause.size()),
                       .largest = signed_percent(difference(*furthest(of_cause)))});
  }
  return views;
}

constexpr double kMebibyte = 1 << 20;

// Both in bytes; of several cards, their mean.
struct WholeCard {
  double published = 0, ours = 0;

  double beside() const { return published - ours; }
};

// Reserved memory depends on the release of PyTorch.
struct WholeCardGroup {
  std::string card;
  std::size_t cards;
  std::string torch;

  auto key() const { return std::tie(card, cards, torch); }
  bool operator<(const WholeCardGroup& other) const { return key() < other.key(); }
};

DeviceMemoryView device_memory_view(const WholeCardGroup& group, std::vector<WholeCard> runs) {
  std::ranges::sort(runs, {}, &WholeCard::beside);
  const auto mebibytes = [](double bytes) {
    return reports::grouped(std::llround(bytes / kMebibyte));
  };
  const double median = runs[(runs.size() - 1) / 2].beside();
  const auto apart = [&](const WholeCard& one) { return (one.ours + median) / one.published - 1; };
  const auto lowest = std::ranges::min_element(runs, {}, apart);
  const auto highest = std::ranges::max_element(runs, {}, apart);
  const auto near = std::ranges::count_if(
      runs, [&](const WholeCard& one) { return std::abs(one.beside() - median) <= 2 * kMebibyte; });
  return {.card = group.card,
          .cards = count(group.cards),
          .torch = group.torch,
          .figures = count(runs.size()),
          .least = mebibytes(runs.front().beside()),
          .median = mebibytes(median),
          .most = mebibytes(runs.back().beside()),
          .near = count(static_cast<std::size_t>(near)),
          .lowest = signed_percent(apart(*lowest)),
          .highest = signed_percent(apart(*highest))};
}

std::vector<DeviceMemoryView> device_memory_views(const Records& records) {
  std::map<WholeCardGroup, std::vector<WholeCard>> groups;
  for (const auto& record : records.records) {
    if (!record.device_memory || !record.emulated || record.emulated->peak_used_bytes.empty())
      continue;
    const auto& used = record.emulated->peak_used_bytes;
    double sum = 0;
    for (const auto bytes : used) sum += static_cast<double>(bytes);
    const auto card = printable(result::recorded_device(record.figure.device).card);
    const auto torch = record.emulated->versions.find("torch");
    const auto release =
        torch == record.emulated->versions.end() ? std::string() : printable(torch->second);
    groups[{card, used.size(), release}].push_back(
        {.published = bytes_of(record.device_memory->value, record.device_memory->unit).value_or(0),
         .ours = sum / static_cast<double>(used.size())});
  }
  std::vector<DeviceMemoryView> views;
  for (const auto& [group, runs] : groups) views.push_back(device_memory_view(group, runs));
  return views;
}

SourceView& view_of(std::vector<SourceView>& views, const Record& record) {
  const auto name = printable(record.figure.source);
  auto at = std::ranges::find(views, name, &SourceView::name);
  if (at == views.end()) at = views.insert(at, {.name = name, .urls = {}});
  const auto url = reports::web_address(record.figure.url.substr(0, record.figure.url.find('#')));
  if (!url.empty() && std::ranges::count(at->urls, url, &UrlView::url) == 0)
    at->urls.push_back({url});
  return *at;
}

// The program, what was changed of it, and the case of ours where the figure has one.
// `figure` is the program's.
StepsView steps_view(const Chosen& rebuilt, const FigureView& figure) {
  const Record& program = *rebuilt.front();
  StepsView view{.configuration = figure.configuration, .card = figure.card};
  std::int64_t before = 0;
  const auto add = [&](const std::string& changed, std::int64_t bytes, const std::string& phase) {
    view.steps.push_back(
        {.changed = changed,
         .bytes = reports::grouped(bytes),
         .change = view.steps.empty() ? "" : reports::signed_grouped(bytes - before),
         .phase = phase});
    before = bytes;
  };
  add("the publisher's program", program.emulated->bytes, figure.phase);
  for (const Step& step : program.steps)
    add(printable(step.changed), step.bytes, reports::phase_label(step.phase));
  for (const Record* other : rebuilt)
    if (other->program.empty())
      add("the case of ours", other->emulated->bytes, reports::phase_label(other->emulated->phase));
  return view;
}

std::vector<SourceView> source_views(const Records& records, const Distinct& figures) {
  std::vector<SourceView> views;
  for (const auto& record : records.records) {
    auto& of_source = view_of(views, record);
    const auto view = figure_view(record);
    if (!view.measured)
      of_source.not_measured.push_back(view);
    else if (record.figure.grade == result::kComputed)
      of_source.computed.push_back(view);
    else if (view.differs)
      of_source.differing.push_back(view);
  }
  for (const auto& one : figures) {
    auto view = figure_view(*one.front());
    for (auto other = one.begin() + 1; other != one.end(); ++other) {
      const auto more = figure_view(**other);
      view.others.push_back(
          {more.configuration, more.bytes, more.difference, more.grade, more.phase});
    }
    auto& of_source = view_of(views, *one.front());
    of_source.figures.push_back(view);
    const auto& steps = one.front()->steps;
    if (!steps.empty() &&
        std::ranges::all_of(steps, [](const Step& step) { return step.bytes > 0; }))
      of_source.ways.push_back(steps_view(one, view));
  }
  return views;
}

}  // namespace

PageView page_view(const Records& records) {
  PageView view;
  std::set<std::string> names, dates;
  std::size_t outside_step = 0;
  const auto figures = distinct_figures(records);
  const auto all = chosen(figures, [](const Record&) { return true; });
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
  view.summary = summary_of(figures);
  view.grades = grade_views(figures);
  view.causes = cause_views(figures);
  view.sources = source_views(records, figures);
  view.device_memory = device_memory_views(records);
  for (const auto& left : records.not_rebuilt)
    view.not_rebuilt.push_back({.source = printable(left.source),
                                .url = reports::web_address(left.url),
                                .figures = reports::grouped(left.figures),
                                .reason = printable(left.reason)});
  return view;
}

}  // namespace peakbench::fidelity
