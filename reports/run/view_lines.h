// A program's peak by the lines of its code: what a person needs first in sentences, the lines as
// a table, and the call stacks as a flame graph.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "trace/lifetimes.h"

namespace peakbench::reports {

struct SentenceView {
  std::string text, kind;

  FieldValues fields() const {
    return {{"text", text, "The sentence"},
            {"kind", kind,
             "out_of_memory, growth, evaluation, kept, checkpoint, conversion, elsewhere, inputs; "
             "empty: where the peak is"}};
  }
};

struct LineCategoryView {
  std::string label, colour, gib, bytes, width;
  bool first = false;

  FieldValues fields() const {
    return {{"label", label, "The category in words"},
            {"colour", colour, "A class for the palette"},
            {"gib", gib, "What the line holds of it, GiB"},
            {"bytes", bytes, "The exact count"},
            {"width", width, "As a fraction of the largest line"},
            {"first", first, "The first of the line"}};
  }
};

struct LineView {
  std::string line, path, function, gib, bytes, percent, count;
  bool rest = false;
  std::vector<LineCategoryView> categories;

  FieldValues fields() const {
    return {{"line", line, "`train.py:42`, without the folder that all files are in"},
            {"path", path, "With the whole path"},
            {"function", function, "The function that the line is in"},
            {"gib", gib, "What it holds at the peak"},
            {"bytes", bytes, "The exact count"},
            {"percent", percent, "Of the peak"},
            {"count", count, "How many allocations"},
            {"rest", rest, "All other lines together"},
            {"categories", categories, "What it is, in the order of the bars"}};
  }
};

struct FlameFrameView {
  std::string x, width, level, label, title, kind;
  bool has_label = false;

  FieldValues fields() const {
    return {{"x", x, "Where it starts, 0 to 1"},
            {"width", width, "Its bytes as a fraction of the peak"},
            {"level", level, "0 is the outermost frame"},
            {"label", label, "Function and line"},
            {"title", title, "With its whole path, its bytes and its share"},
            {"kind", kind, "own, library, unknown"},
            {"has_label", has_label, "It is wide enough for its label"}};
  }
};

struct RangeView {
  std::string name, highest_gib, highest_bytes, alive_gib, alive_bytes, percent;

  FieldValues fields() const {
    return {{"name", name, "With the ranges around it"},
            {"highest_gib", highest_gib, "Allocated at the most while it was open"},
            {"highest_bytes", highest_bytes, "The exact count"},
            {"alive_gib", alive_gib, "Allocated in it and alive at the peak"},
            {"alive_bytes", alive_bytes, "The exact count"},
            {"percent", percent, "Of the peak"}};
  }
};

struct LinesView {
  std::string gib, levels, top, more_ranges, pools;
  std::vector<RangeView> ranges;
  bool has_ranges = false, has_called = false;
  std::vector<SentenceView> sentences;
  std::vector<LineView> lines, called;
  std::vector<FlameFrameView> frames;

  FieldValues fields() const {
    return {{"gib", gib, "The peak"},
            {"sentences", sentences, "What explains the peak, where it is, what else was found"},
            {"lines", lines, "Lines of code at the peak, the largest first"},
            {"has_called", has_called, "One line holds more than half, and calls libraries"},
            {"called", called, "The same bytes by the lines of libraries that made them"},
            {"has_ranges", has_ranges, "The program names ranges"},
            {"ranges", ranges, "The ranges that the program names, the highest first"},
            {"more_ranges", more_ranges, "How many are left out; empty: none"},
            {"pools", pools, "What private pools have reserved, a sentence; empty: nothing"},
            {"frames", frames, "The flame graph: frames from the outermost inwards"},
            {"levels", levels, "How many levels it has"},
            {"top", top, "Levels of the flame graphs above it in the table's picture"}};
  }
};

// nullopt where no stacks were recorded. `event`: of the peak.
std::optional<LinesView> lines_view(const trace::Trace& trace,
                                    const std::vector<trace::Lifetime>& lifetimes,
                                    std::uint64_t event);

}  // namespace peakbench::reports
