#pragma once

#include <limits>
#include <string>
#include <vector>

namespace peakbench {

// The width of a text on a terminal.

// Columns that a terminal uses for the text: wide characters two, combining ones none.
int display_width(const std::string& text);
// The text cut to fit.
std::string fit(const std::string& text, int columns);
// The same cut in the middle: names of cases and stacks differ in their ends as often as in their
// beginnings, "checkpointing+…+adam8bit".
std::string fit_middle(const std::string& text, int columns);

// Words in lines.

inline constexpr int kUnbroken = std::numeric_limits<int>::max();  // a width

// Broken between words so that no line takes more than `width` columns of a terminal. Lines after
// the first begin with `indent` spaces; a word that is wider is cut. Ends with a newline.
std::string wrapped(const std::string& words, int width, int indent = 2);

// Words behind a head, "  name  ", and in the lines after the first below where they began.
std::string hanging(const std::string& head, const std::string& words, int width);

// Rows of text in columns, as many as fit the window.

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
