#pragma once

#include <string>
#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

// Display names of source lines: file names shortened to the part that differs.

// Names of the files of one trace, unescaped:
//
// - the program's own: without their common folder;
// - those of libraries: the part after site-packages;
// - cells of a notebook: In[3]. Cells without a number are <cell>, or <cell 1>, <cell 2>, ... in
//   the order of their first allocation.
class LineNames {
 public:
  explicit LineNames(const std::vector<std::string>& files);
  explicit LineNames(const trace::Trace& trace) : LineNames(trace.files) {}

  std::string file(const std::string& path) const;            // `train.py`, `torch/nn/linear.py`
  std::string line(const trace::SourceLine& line) const;      // `train.py:42`
  std::string in_words(const trace::SourceLine& line) const;  // `train.py:42 (forward)`

 private:
  std::string folder_;              // of all of the program's own files, with its slash
  std::vector<std::string> cells_;  // of a notebook
};

// Where one line of a program holds most of a peak, as `trainer.train()` does: the lines of
// libraries that it calls.

// Shares by the innermost line outside of PyTorch, whoever wrote it; the largest first. Empty if no
// line of `own` (lines_at) holds more than half, or if the result would be the lines of `own`.
std::vector<trace::LineShare> called_lines(const trace::Trace& trace,
                                           const std::vector<trace::Lifetime>& lifetimes,
                                           std::uint64_t event,
                                           const std::vector<trace::LineShare>& own);

}  // namespace peakbench::analysis
