#include "base/columns.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/printable.h"

namespace peakbench {
namespace {

int columns_of(char32_t c) {
  const auto in = [c](char32_t from, char32_t to) { return c >= from && c <= to; };
  if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0xFE00, 0xFE0F)) return 0;
  const bool wide = in(0x1100, 0x115F) || in(0x2E80, 0xA4CF) || in(0xAC00, 0xD7A3) ||
                    in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) ||
                    in(0x1F300, 0x1FAFF) || in(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

int display_width(const std::string& text) {
  int width = 0;
  for_each_shown(text,
                 [&](std::string_view character) { width += columns_of(code_point(character)); });
  return width;
}

std::string fit(const std::string& text, int columns) {
  if (display_width(text) <= columns) return text;
  std::string result;
  int width = 0;
  for_each_shown(text, [&](std::string_view character) {
    const int wide = columns_of(code_point(character));
    if (width >= 0 && width + wide <= columns - 1) {
      result += character;
      width += wide;
    } else {
      width = -1;  // full: nothing after the first character that does not fit
    }
  });
  return columns > 0 ? result + "\u2026" : result;
}

std::string fit_middle(const std::string& text, int columns) {
  if (display_width(text) <= columns) return text;
  std::vector<std::pair<std::string, int>> characters;
  for_each_shown(text, [&](std::string_view character) {
    characters.emplace_back(character, columns_of(code_point(character)));
  });
  const int room = std::max(0, columns - 1);
  std::string head, tail;
  int of_tail = 0, of_head = 0;
  for (auto at = characters.rbegin(); at != characters.rend(); ++at) {
    if (of_tail + at->second > room / 2) break;
    tail.insert(0, at->first);
    of_tail += at->second;
  }
  for (const auto& [character, wide] : characters) {
    if (of_head + wide > room - of_tail) break;
    head += character;
    of_head += wide;
  }
  return columns > 0 ? head + "\u2026" + tail : "";
}

std::string wrapped(const std::string& words, int width, int indent) {
  std::string out, line;
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find(' ', begin), words.size());
    const auto word = fit(words.substr(begin, end - begin), width - indent);
    begin = end + 1;
    if (!line.empty() && display_width(line + " " + word) > width) {
      out += line + "\n";
      line = std::string(static_cast<std::size_t>(indent), ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

std::string hanging(const std::string& head, const std::string& words, int width) {
  constexpr int kLeast = 20;  // columns for words
  const int indent = std::max(0, std::min(display_width(head), width - kLeast));
  std::istringstream lines(wrapped(words, std::max(width - display_width(head), kLeast), 0));
  std::string out = head;
  bool first = true;
  for (std::string line; std::getline(lines, line); first = false)
    out += (first ? "" : std::string(static_cast<std::size_t>(indent), ' ')) + line + "\n";
  return out;
}

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
