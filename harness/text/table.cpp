#include "text/table.h"

#include <algorithm>
#include <cstddef>

#include "text/columns.h"
#include "text/printable.h"

namespace peakbench {
namespace {

constexpr int kLeastOfFirst = 18, kLeast = 8;

std::string padded(const std::string& text, int width, bool right, bool is_name = false) {
  const auto fitted = is_name ? fit_middle(text, width) : fit(text, width);
  const std::string space(static_cast<std::size_t>(std::max(0, width - display_width(fitted))),
                          ' ');
  return right ? space + fitted : fitted + space;
}

std::size_t least_important(const std::vector<TableColumn>& columns) {
  const auto least =
      std::max_element(columns.begin() + 1, columns.end(),
                       [](const auto& a, const auto& b) { return a.importance < b.importance; });
  return static_cast<std::size_t>(least - columns.begin());
}

}  // namespace

Table::Table(std::vector<TableColumn> columns, std::vector<TableRow> rows, int width)
    : columns_(std::move(columns)), rows_(std::move(rows)), width_(width) {
  for (auto& row : rows_)
    for (auto& cell : row.cells) cell = printable(cell);
  const int first = width_of(0);
  while (width_ - width_beside_first() < std::clamp(first, kLeast, kLeastOfFirst)) {
    const auto least = least_important(columns_);
    if (least == columns_.size() || columns_[least].importance == 0) break;
    remove_column(least);
  }
  widths_.push_back(std::clamp(width_ - width_beside_first(), kLeast, std::max(first, kLeast)));
  for (std::size_t column = 1; column < columns_.size(); ++column)
    widths_.push_back(width_of(column));
}

int Table::width_of(std::size_t column) const {
  int width = display_width(columns_[column].heading);
  for (const auto& row : rows_) width = std::max(width, display_width(row.cells[column]));
  return width;
}

int Table::width_beside_first() const {
  int used = 0;
  for (std::size_t column = 1; column < columns_.size(); ++column) used += 2 + width_of(column);
  return used;
}

void Table::remove_column(std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  columns_.erase(columns_.begin() + at);
  for (auto& row : rows_) row.cells.erase(row.cells.begin() + at);
}

bool Table::shows(const std::string& heading) const {
  return std::ranges::find(columns_, heading, &TableColumn::heading) != columns_.end();
}

std::string Table::line_of(const TableRow& row) const {
  std::string line = padded(row.cells[0], widths_[0], columns_[0].right, true);
  if (!row.instead.empty()) {
    line = fit(line + "  " + row.instead, width_);
  } else {
    for (std::size_t column = 1; column < columns_.size(); ++column)
      line += "  " + padded(row.cells[column], widths_[column], columns_[column].right);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Table::text() const {
  TableRow headings;
  for (const auto& column : columns_) headings.cells.push_back(column.heading);
  auto text = line_of(headings);
  for (const auto& row : rows_) text += line_of(row);
  return text;
}

std::string table_text(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       int width) {
  for (std::size_t column = columns.size(); column-- > 1;) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    if (!std::ranges::all_of(rows, [&](const auto& row) { return row[column].empty(); })) continue;
    columns.erase(columns.begin() + at);
    for (auto& row : rows) row.erase(row.begin() + at);
  }
  std::vector<TableRow> cells;
  cells.reserve(rows.size());
  for (auto& row : rows) cells.push_back({std::move(row), ""});
  return Table(std::move(columns), std::move(cells), width).text();
}

}  // namespace peakbench
