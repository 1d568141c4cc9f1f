#include "reports/compare/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/compare/compare.h"
#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/explain.h"

namespace peakbench::compare {
namespace {

// As many whole characters as fit into `columns`, one at least.
std::size_t bytes_within(const std::string& text, int columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    auto next = bytes + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    if (bytes > 0 && reports::display_width(text.substr(0, next)) > columns) break;
    bytes = next;
  }
  return bytes;
}

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(0, count)), ' ');
}

}  // namespace

Page::Page(int width) : width_(std::max(width, 30)) {}

void Page::emit(int indent, const std::string& text) {
  text_ += blanks(indent) + text;
  text_.erase(text_.find_last_not_of(' ') + 1);
  text_ += "\n";
}

void Page::line(int indent, const std::string& text) {
  std::string current;
  int at = indent;
  const auto next_line = [&] {
    emit(at, current);
    current.clear();
    at = indent + 2;
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    auto word = text.substr(begin, end - begin);
    begin = end + 1;
    const auto together = current.empty() ? word : current + " " + word;
    if (at + reports::display_width(together) <= width_) {
      current = together;
      continue;
    }
    if (!current.empty()) next_line();
    while (at + reports::display_width(word) > width_) {
      current = word.substr(0, bytes_within(word, width_ - at));
      word.erase(0, current.size());
      next_line();
    }
    current = word;
  }
  if (!current.empty()) emit(at, current);
}

// A comparison for a terminal: what became of each case, then what grew.

namespace {

using reports::printable;

namespace in_text {
constexpr std::size_t kCausesShown = 6, kLinesShown = 8;
}

std::string side_line(const char* name, const Side& side) {
  std::string text = fmt::format("{} {}", name, printable(side.label));
  if (!side.commit.empty()) text += ", commit " + printable(side.commit);
  if (!side.created.empty()) text += ", " + printable(reports::date_for_people(side.created));
  return text;
}

struct Row {
  std::string state, allocated, speed, id;
};

Row row_of(const CaseComparison& one) {
  Row row{state_text(one), "", "", printable(one.id)};
  if (const auto* allocated = peak_allocated(one))
    row.allocated = allocated->now == allocated->base
                        ? reports::gib(allocated->now) + " GiB"
                        : short_difference(allocated->now - allocated->base);
  const auto* telling = telling_figure(one);
  if (telling != nullptr &&
      (telling->where != "peak" || !telling->space.empty() || telling->figure != "allocated"))
    row.allocated += fmt::format(", {} {}", figure_name(*telling),
                                 short_difference(telling->now - telling->base));
  if (one.speed) {
    const auto& difference = one.speed->difference;
    row.speed = difference.ratio > 0 ? fmt::format("{} {}", ratio_text(difference.ratio),
                                                   to_string(difference.direction))
                                     : to_string(difference.direction);
  }
  return row;
}

std::string right(const std::string& text, int width) {
  return blanks(width - reports::display_width(text)) + text;
}

// Narrow screens have the id on a line of its own.
void add_table(Page& page, const std::vector<CaseComparison>& cases) {
  Row heading{"memory", "peak allocated", "step time", "case"};
  std::vector<Row> rows{heading};
  for (const auto& one : cases) rows.push_back(row_of(one));
  int state = 0, allocated = 0, speed = 0, id = 0;
  bool timed = false;
  for (const auto& row : rows) {
    state = std::max(state, reports::display_width(row.state));
    allocated = std::max(allocated, reports::display_width(row.allocated));
    speed = std::max(speed, reports::display_width(row.speed));
    id = std::max(id, reports::display_width(row.id));
    timed = timed || (&row != &rows.front() && !row.speed.empty());
  }
  const bool wide =
      state + allocated + (timed ? speed + 2 : 0) + std::min(id, 40) + 4 <= page.width();
  for (const auto& row : rows) {
    std::string line = row.state + blanks(state - reports::display_width(row.state)) + "  " +
                       right(row.allocated, allocated);
    if (timed) line += "  " + right(row.speed, speed);
    if (wide) {
      const int room = page.width() - reports::display_width(line) - 2;
      page.line(0, line + "  " + reports::fit_middle(row.id, room));
    } else {
      page.line(0, line);
      if (&row != &rows.front()) page.line(2, row.id);
    }
  }
}

void add_measures(Page& page, const CaseComparison& one) {
  for (const auto& measure : one.measures) {
    if (measure.direction == Direction::kSame) continue;
    auto text = fmt::format("{} {}", to_string(measure.direction), figure_text(measure));
    if (measure.allowed > 0) text += fmt::format("; {} allowed", difference_text(measure.allowed));
    if (!measure.is_held) text += "; the policy holds the peak alone";
    page.line(2, text);
  }
}

void add_category(Page& page, const analysis::CategoryCauses& category) {
  const auto label = printable(reports::category_label(category.category));
  const auto change = [](std::int64_t blocks, std::int64_t requested) {
    const auto of_blocks = short_difference(blocks), asked_for = short_difference(requested);
    return of_blocks + (asked_for == of_blocks ? "" : " (" + asked_for + " asked for)");
  };
  const auto sum = change(category.block_difference, category.requested_difference);
  if (category.causes.size() == 1)
    return page.line(
        4, fmt::format("{} {}: {}", sum, label, reports::cause_text(category.causes.front())));
  page.line(4, fmt::format("{} {}", sum, label));
  std::int64_t blocks = category.block_difference, requested = category.requested_difference;
  const auto shown = std::min(in_text::kCausesShown, category.causes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& cause = category.causes[i];
    blocks -= cause.block_difference();
    requested -= cause.requested_difference();
    page.line(6,
              fmt::format("{}: {}", change(cause.block_difference(), cause.requested_difference()),
                          reports::cause_text(cause)));
  }
  if (category.causes.size() > shown)
    page.line(6, fmt::format("{}: {} places more (--json has all)", change(blocks, requested),
                             category.causes.size() - shown));
}

void add_growth(Page& page, const PhaseGrowth& growth, const std::string& where) {
  auto text = fmt::format("{}: {} allocated", where, difference_text(growth.block_bytes));
  if (growth.requested_bytes != growth.block_bytes)
    text += fmt::format(", {} asked for", difference_text(growth.requested_bytes));
  page.line(2, text);
  for (const auto& category : growth.causes) add_category(page, category);
}

// The peak first; the phase that it is in is not told twice, and phases with the same causes are
// told together.
void add_growths(Page& page, const CaseComparison& one) {
  std::vector<const PhaseGrowth*> left;
  if (one.at_peak) add_growth(page, *one.at_peak, where_text(*one.at_peak, true));
  for (const auto& growth : one.growth)
    if (!is_told_at_peak(one, growth)) left.push_back(&growth);
  while (!left.empty()) {
    const auto* first = left.front();
    auto where = where_text(*first, false);
    for (std::size_t i = 1; i < left.size(); ++i)
      if (left[i]->causes == first->causes)
        where += ", of " + printable(reports::phase_label(left[i]->phase));
    std::erase_if(left, [&](const auto* other) { return other->causes == first->causes; });
    add_growth(page, *first, where);
  }
}

void add_lines(Page& page, const std::vector<LineChange>& lines) {
  if (lines.empty()) return;
  page.line(2, "at the peak, by lines of code:");
  for (std::size_t i = 0; i < std::min(lines.size(), in_text::kLinesShown); ++i)
    page.line(4, fmt::format("{}: {} before, {} now", printable(line_text(lines[i])),
                             lines[i].base == 0 ? "nothing" : bytes_text(lines[i].base),
                             lines[i].now == 0 ? "nothing" : bytes_text(lines[i].now)));
  if (lines.size() > in_text::kLinesShown)
    page.line(4, fmt::format("and {} lines more", lines.size() - in_text::kLinesShown));
}

// Of what has no traces, whose causes would say more.
void add_categories(Page& page, const CaseComparison& one) {
  if (one.at_peak || !one.growth.empty() || one.memory == Direction::kSame) return;
  std::string text;
  for (const auto& category : one.categories)
    if (category.now != category.base)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                          short_difference(category.now - category.base),
                          printable(reports::category_label(category.category)));
  if (!text.empty()) page.line(2, "at the peak, by category: " + text);
}

bool has_details(const CaseComparison& one) {
  const bool speed = one.speed && one.speed->difference.direction != Direction::kSame;
  const bool verdict = one.verdict && one.verdict->direction != Direction::kSame;
  return verdict || !one.reason.empty() || one.memory != Direction::kSame ||
         !one.growth_note.empty() || !one.lines.empty() || !one.findings.empty() || speed ||
         std::ranges::any_of(one.measures, [](const Measure& measure) {
           return measure.direction != Direction::kSame;
         });
}

void add_details(Page& page, const CaseComparison& one) {
  page.blank();
  page.line(0, fmt::format("{}{}", printable(one.id), one.emulated ? " (emulated)" : ""));
  if (!one.reason.empty()) page.line(2, state_text(one) + ": " + printable(one.reason));
  if (one.verdict && one.verdict->direction != Direction::kSame)
    page.line(2, printable(verdict_text(*one.verdict)));
  for (const auto& finding : one.findings)
    page.line(2, (finding.is_new ? "NEW: " : "BASE alone: ") + printable(finding.sentence));
  add_measures(page, one);
  add_lines(page, one.lines);
  add_categories(page, one);
  add_growths(page, one);
  if (!one.growth_note.empty())
    page.line(2, "what grew is not known: " + printable(one.growth_note));
  if (one.speed)
    page.line(
        2, fmt::format("step time {}: {} -> {} ms, {}", to_string(one.speed->difference.direction),
                       reports::milliseconds(one.speed->base_ns),
                       reports::milliseconds(one.speed->now_ns),
                       speed_text(one.speed->difference, "processes")));
}

}  // namespace

std::string to_text(const Comparison& comparison, int width) {
  Page page(width);
  page.line(0, side_line("BASE", comparison.base));
  page.line(0, side_line("NEW ", comparison.now));
  for (const auto& change : comparison.changes) page.line(2, "changed " + change_text(change));
  for (const auto& note : comparison.notes) page.line(2, printable(note));
  page.blank();
  add_table(page, comparison.cases);
  for (const auto& one : comparison.cases)
    if (has_details(one)) add_details(page, one);
  page.blank();
  page.line(0, summary_text(comparison));
  return page.take();
}

}  // namespace peakbench::compare
