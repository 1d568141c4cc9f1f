#include "reports/report/view_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "reports/render/format.h"
#include "reports/render/text.h"

namespace peakbench::reports {
namespace {

std::string note_of(const result::FitCell& cell) {
  std::string note = cell.reason;
  const auto add = [&note](const std::string& text) {
    if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
  };
  if (!cell.fails.empty()) add((cell.largest ? "the next one fails: " : "") + cell.fails);
  for (const auto& against : cell.against) add("not monotone: " + against);
  return printable(note);
}

std::string label_of(const std::string& state) {
  if (state == "does_not_fit") return "does not fit";
  if (state == "not_run") return "not run";
  return state == "unknown" ? "not known" : printable(state);
}

// `searched`: a largest value was looked for; otherwise there is one value, and it fits or not.
FitCellView cell_view(const result::FitCell& cell, bool searched) {
  FitCellView view;
  view.card = printable(cell.card);
  view.state = printable(cell.state);
  view.state_label = label_of(cell.state);
  view.fits = cell.state == "fits" || cell.largest.has_value();
  view.at_least = view.fits && cell.state == "unknown";
  if (cell.largest && searched) view.largest = grouped(*cell.largest);
  if (cell.takes_bytes) view.takes = gib(*cell.takes_bytes);
  view.is_least = cell.is_least;
  if (cell.left_bytes)
    (*cell.left_bytes < 0 ? view.lacks : view.left) = gib(std::abs(*cell.left_bytes));
  view.note = note_of(cell);
  return view;
}

}  // namespace

FitView fit_view(const result::FitGrid& grid, std::size_t index, const std::string& run_title) {
  FitView view;
  view.anchor = fmt::format("fit-{}", index + 1);
  view.label = printable(grid.label);
  view.run_title = run_title;
  std::istringstream lines(grid.answer);
  for (std::string line; std::getline(lines, line);) view.answers.push_back(printable(line));
  for (const auto& cell : grid.cells) {
    const auto name = printable(cell.card);
    if (std::ranges::find(view.cards, name, &FitCardView::name) == view.cards.end())
      view.cards.push_back({name, gib(cell.card_memory_bytes)});
  }
  for (const auto& cell : grid.cells) {
    const auto name = printable(cell.row);
    auto row = std::ranges::find(view.rows, name, &FitRowView::name);
    if (row == view.rows.end()) {
      view.rows.push_back({name, std::vector<FitCellView>(view.cards.size())});
      row = view.rows.end() - 1;
    }
    const auto column = std::ranges::find(view.cards, printable(cell.card), &FitCardView::name);
    row->cells[static_cast<std::size_t>(column - view.cards.begin())] =
        cell_view(cell, !grid.label.empty());
  }
  return view;
}

}  // namespace peakbench::reports
