#pragma once

#include <string>
#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

// What a line of somebody's code is called for people: its file shortened to what differs.

// Of the files of one trace: the program's own without the folder that all of them are in, those
// of libraries from behind site-packages, a notebook's cells In[3], where the number is not known
// <cell> or, of several, <cell 1> and so on, in the order in which they first allocate. A name
// holds what the file's does, nothing is escaped.
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

// By the innermost line that is not PyTorch's, whoever wrote it, the largest first; empty where no
// line of `own` (lines_at) holds more than half, and where these lines are those.
std::vector<trace::LineShare> called_lines(const trace::Trace& trace,
                                           const std::vector<trace::Lifetime>& lifetimes,
                                           std::uint64_t event,
                                           const std::vector<trace::LineShare>& own);

}  // namespace peakbench::analysis
