// Rows of text in columns, as many as fit the window.
#pragma once

#include <string>
#include <vector>

namespace peakbench::cli {

struct TableColumn {
  std::string heading;
  int importance = 0;  // 0 stays longest; the first column always stays, and is cut to fit
  bool right = false;  // figures
};

// `rows`: a text a column. Columns that are empty in every row are left out. Ends with a newline.
std::string table_text(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       int width);

}  // namespace peakbench::cli
