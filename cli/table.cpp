#include "cli/table.h"

#include <algorithm>
#include <cstddef>

#include "reports/text.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr int kLeastOfFirst = 18;

int width_of(const TableColumn& column, const Rows& rows, std::size_t place) {
  int width = reports::display_width(column.heading);
  for (const auto& row : rows) width = std::max(width, reports::display_width(row[place]));
  return width;
}

void remove_column(std::vector<TableColumn>& columns, Rows& rows, std::size_t place) {
  columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(place));
  for (auto& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(place));
}

void remove_empty(std::vector<TableColumn>& columns, Rows& rows) {
  for (std::size_t place = columns.size(); place-- > 1;) {
    const bool empty =
        std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row[place].empty(); });
    if (empty) remove_column(columns, rows, place);
  }
}

int width_beside_first(const std::vector<TableColumn>& columns, const Rows& rows) {
  int used = 0;
  for (std::size_t place = 1; place < columns.size(); ++place)
    used += 2 + width_of(columns[place], rows, place);
  return used;
}

std::size_t least_important(const std::vector<TableColumn>& columns) {
  const auto least =
      std::max_element(columns.begin() + 1, columns.end(),
                       [](const auto& a, const auto& b) { return a.importance < b.importance; });
  return static_cast<std::size_t>(least - columns.begin());
}

std::string padded(const std::string& text, int width, bool right) {
  const auto fitted = reports::fit(text, width);
  const std::string space(
      static_cast<std::size_t>(std::max(0, width - reports::display_width(fitted))), ' ');
  return right ? space + fitted : fitted + space;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<TableColumn>& columns,
                    const std::vector<int>& widths) {
  std::string line;
  for (std::size_t place = 0; place < cells.size(); ++place)
    line += (place == 0 ? "" : "  ") + padded(cells[place], widths[place], columns[place].right);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string table_text(std::vector<TableColumn> columns, Rows rows, int width) {
  for (auto& row : rows)
    for (auto& cell : row) cell = printable(cell);
  remove_empty(columns, rows);
  const int first = width_of(columns[0], rows, 0);
  while (columns.size() > 1 &&
         width - width_beside_first(columns, rows) < std::min(first, kLeastOfFirst))
    remove_column(columns, rows, least_important(columns));
  std::vector<int> widths{
      std::clamp(width - width_beside_first(columns, rows), 8, first < 8 ? 8 : first)};
  for (std::size_t place = 1; place < columns.size(); ++place)
    widths.push_back(width_of(columns[place], rows, place));
  std::vector<std::string> headings;
  for (const auto& column : columns) headings.push_back(column.heading);
  auto text = line_of(headings, columns, widths);
  for (const auto& row : rows) text += line_of(row, columns, widths);
  return text;
}

}  // namespace peakbench::cli
