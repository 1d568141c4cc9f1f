// A comparison for a terminal: what became of each case, then what grew.
#include "reports/render/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/compare/compare.h"
#include "reports/compare/page.h"
#include "reports/compare/words.h"
#include "reports/render/format.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

using reports::printable;

namespace in_text {
constexpr std::size_t kPartsShown = 8, kAppearedShown = 5, kLinesShown = 8;
}

std::string side_line(const char* name, const Side& side) {
  std::string text = fmt::format("{} {}", name, printable(side.label));
  if (!side.commit.empty()) text += ", commit " + printable(side.commit);
  if (!side.created.empty()) text += ", " + printable(reports::date_for_people(side.created));
  return text;
}

std::string change_line(const Change& change) {
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("(none)") : printable(value);
  };
  auto text = fmt::format("{}: {} -> {}", printable(reports::spaced(change.name)),
                          shown(change.base), shown(change.now));
  if (change.cases > 0) text += fmt::format(" ({} cases)", change.cases);
  return text;
}

const Measure* find_measure(const CaseComparison& one, const char* figure) {
  for (const auto& measure : one.measures)
    if (measure.where == "peak" && measure.space.empty() && measure.figure == figure)
      return &measure;
  return nullptr;
}

struct Row {
  std::string state, allocated, speed, id;
};

Row row_of(const CaseComparison& one) {
  Row row{state_text(one), "", "", printable(one.id)};
  if (const auto* allocated = find_measure(one, "allocated"))
    row.allocated = allocated->now == allocated->base
                        ? reports::gib(allocated->now) + " GiB"
                        : short_difference(allocated->now - allocated->base);
  if (one.speed) {
    const auto& difference = one.speed->difference;
    row.speed = difference.ratio > 0 ? fmt::format("{} {}", ratio_text(difference.ratio),
                                                   to_string(difference.direction))
                                     : to_string(difference.direction);
  }
  return row;
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
    std::string line = left(row.state, state) + "  " + right(row.allocated, allocated);
    if (timed) line += "  " + right(row.speed, speed);
    if (wide) {
      const int room = page.width() - reports::display_width(line) - 2;
      page.line(0, line + "  " + reports::fit(row.id, room));
    } else {
      page.line(0, line);
      if (&row != &rows.front()) page.line(2, row.id);
    }
  }
}

void add_measures(Page& page, const CaseComparison& one) {
  for (const auto& measure : one.measures) {
    if (measure.direction == Direction::kSame) continue;
    const auto where = measure.space.empty() ? reports::phase_label(measure.where)
                                             : measure.where + " of " + measure.space;
    auto text = fmt::format("{} {} {}: {}, from {}", to_string(measure.direction), printable(where),
                            measure.figure, difference_text(measure.now - measure.base),
                            bytes_text(measure.base));
    if (measure.allowed > 0) text += fmt::format("; {} allowed", difference_text(measure.allowed));
    page.line(2, text);
  }
}

void add_appeared(Page& page, const PhaseGrowth& growth) {
  std::size_t shown = 0;
  for (const auto& one : growth.appeared) {
    if (one.count < 0 || shown == in_text::kAppearedShown) break;
    if (shown++ == 0) page.line(4, "appeared:");
    auto text = fmt::format("{} x {}", one.count, short_difference(one.requested_bytes).substr(1));
    text += fmt::format(" asked for ({} allocated): ", reports::grouped(one.block_bytes));
    if (!one.name.empty()) text += printable(one.name) + ", ";
    if (!one.shape.empty()) text += printable(one.shape) + " " + printable(one.dtype) + ", ";
    page.line(6, text + part_text(one.category, one.allocated_in, one.module, one.op));
  }
}

void add_growth(Page& page, const PhaseGrowth& growth) {
  page.line(
      2, fmt::format("at the maximum of {}: {} allocated, {} asked for",
                     printable(reports::phase_label(growth.phase)),
                     difference_text(growth.block_bytes), difference_text(growth.requested_bytes)));
  std::size_t shown = 0;
  for (const auto& part : largest_first(growth.parts)) {
    if (shown++ == in_text::kPartsShown) {
      page.line(4, fmt::format("and {} parts more (--json has all)",
                               growth.parts.size() - in_text::kPartsShown));
      break;
    }
    page.line(4, fmt::format("{} allocated, {} asked for: {}", short_difference(part.block_bytes),
                             short_difference(part.requested_bytes),
                             part_text(part.category, part.allocated_in, part.module, part.op)));
  }
  add_appeared(page, growth);
}

void add_lines(Page& page, const std::vector<LineChange>& lines) {
  if (lines.empty()) return;
  page.line(2, "at the peak, by lines of code:");
  for (std::size_t i = 0; i < std::min(lines.size(), in_text::kLinesShown); ++i)
    page.line(4, fmt::format("{}; {} before", printable(line_text(lines[i])),
                             lines[i].base == 0 ? "nothing" : bytes_text(lines[i].base)));
  if (lines.size() > in_text::kLinesShown)
    page.line(4, fmt::format("and {} lines more", lines.size() - in_text::kLinesShown));
}

bool has_details(const CaseComparison& one) {
  const bool speed = one.speed && one.speed->difference.direction != Direction::kSame;
  const bool verdict = one.verdict && one.verdict->direction != Direction::kSame;
  return verdict || !one.reason.empty() || one.memory != Direction::kSame ||
         !one.growth_note.empty() || !one.lines.empty() || speed;
}

void add_details(Page& page, const CaseComparison& one) {
  page.blank();
  page.line(0, fmt::format("{}{}", printable(one.id), one.emulated ? " (emulated)" : ""));
  if (!one.reason.empty()) page.line(2, state_text(one) + ": " + printable(one.reason));
  if (one.verdict && one.verdict->direction != Direction::kSame)
    page.line(2, printable(verdict_text(*one.verdict)));
  add_measures(page, one);
  add_lines(page, one.lines);
  for (const auto& growth : one.growth) add_growth(page, growth);
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
  for (const auto& change : comparison.changes) page.line(2, "changed " + change_line(change));
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
