// The lines of a user's code that hold the memory alive at a moment. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

// A line of a source, as the stack of an allocation has it.
struct SourceLine {
  std::string file;      // as Python names it; empty where no stack was recorded
  std::string function;  // `forward`
  std::int32_t line = 0;

  bool operator==(const SourceLine&) const = default;
};

// Whether a file belongs to what is installed (site-packages, Python's own library, Peakbench's
// tracer, code that is in no file) and not to who wrote the program.
bool is_library_file(const std::string& file);
// Of such a file, the part that is the same in every installation: `torch/nn/modules/linear.py`. Of
// others, all.
std::string library_file(const std::string& file);

// A notebook's cell, as ipykernel calls it, /tmp/ipykernel_4711/2345678.py, or IPython,
// <ipython-input-3-1f0a2b>.
bool is_cell(std::string_view file);
// 3, as in `In[3]`; nullopt where the name does not have it.
std::optional<int> cell_number(std::string_view file);

// Whether a file is PyTorch's, or Peakbench's tracer.
bool is_pytorch_file(std::string_view file);

// The line that a stack counts for: the program's own (own_line), or the innermost outside of
// PyTorch, whoever wrote it.
enum class LineOf { kProgram, kAnyLibrary };

// Every line that is some stack's own, found once, by a number: for walks over many allocations.
class OwnLines {
 public:
  explicit OwnLines(const Trace& trace, LineOf whose = LineOf::kProgram);
  // 0 is the line of no stack, its file empty.
  std::size_t of(std::int32_t stack) const {
    return stack == kNone ? 0 : line_of_[static_cast<std::size_t>(stack)];
  }
  const SourceLine& at(std::size_t number) const { return lines_[number]; }
  std::size_t size() const { return lines_.size(); }

 private:
  std::vector<SourceLine> lines_;
  std::vector<std::size_t> line_of_;  // by frame
};

// The program's own line of a stack, the first of these:
//
// 1. the innermost frame in a file of the program;
// 2. the innermost frame outside of PyTorch;
// 3. the innermost frame.
SourceLine own_line(const Trace& trace, std::int32_t stack);

// The program's line that called own_line()'s function: its line that called the outermost module.
// If no module was called: its next frame outwards. The file is empty if there is none.
SourceLine calling_line(const Trace& trace, std::int32_t stack);

// All that one line holds.
struct LineShare {
  SourceLine line;
  std::int64_t bytes = 0;  // of blocks
  std::int64_t allocations = 0;
  double share = 0;  // of the bytes alive
  std::array<std::int64_t, kCategoryCount> by_category{};
};

// Of what is alive in the space after `event`, the largest first. Guarantee: the bytes sum to the
// allocated bytes there. What has no stack is a line of its own, its file empty.
std::vector<LineShare> lines_at(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                std::uint64_t event, int space = kOwnSpace,
                                LineOf whose = LineOf::kProgram);

}  // namespace peakbench::trace
