// The terminal, as far as live progress needs one.
#pragma once

#include <functional>

namespace peakbench::cli {

struct Screen {
  bool live =
      false;  // may be redrawn: a terminal that knows escape codes, and nobody asked for none
  std::function<int()> width = [] { return 80; };  // asked at each drawing: windows change
};

// Of a file descriptor. No live drawing with NO_COLOR or TERM=dumb, or where it is no terminal.
Screen screen_of(int descriptor);

// Columns for a table on a descriptor: the terminal's, or 100 where it is none.
int table_width(int descriptor);
// Columns for a sentence: the terminal's; a file's sentences are not broken.
int line_width(int descriptor);

}  // namespace peakbench::cli
