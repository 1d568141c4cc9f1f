// What a line of somebody's code is called for people: its file shortened to what differs.
#pragma once

#include <string>
#include <vector>

#include "trace/lines.h"

namespace peakbench::analysis {

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

}  // namespace peakbench::analysis
