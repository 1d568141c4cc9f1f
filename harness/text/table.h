// Rows of text in columns, as many as fit the window.
#pragma once

#include <string>
#include <vector>

namespace peakbench {

struct TableColumn {
  std::string heading;
  int importance = 0;  // the largest goes first; 0 and the first column, a name cut to fit, stay
  bool right = false;  // figures
};

struct TableRow {
  std::vector<std::string> cells;  // a text a column
  std::string instead;             // where not empty: in place of all cells but the first
};

// Leaves the least important columns out until the first one has at least 18 columns of the window,
// or all that it needs.
class Table {
 public:
  Table(std::vector<TableColumn> columns, std::vector<TableRow> rows, int width);

  bool shows(const std::string& heading) const;
  std::string text() const;  // ends with a newline

 private:
  int width_of(std::size_t column) const;
  int width_beside_first() const;
  void remove_column(std::size_t column);
  std::string line_of(const TableRow& row) const;

  std::vector<TableColumn> columns_;
  std::vector<TableRow> rows_;
  int width_;
  std::vector<int> widths_;  // by column
};

// A table without the columns that are empty in every row.
std::string table_text(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       int width);

}  // namespace peakbench
