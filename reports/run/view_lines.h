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
  PEAKBENCH_VIEW(text(text, "The sentence"),
                 text(kind, "The finding's name, such as growth (docs/how-to/causes.md); empty: "
                      "where the peak is"),
                 text(page, "The page that explains the finding; empty: where the peak is"));
};

struct LineCategoryView {
  PEAKBENCH_VIEW(text(label, "The category in words"),
                 text(colour, "A class for the palette"),
                 text(gib, "What the line holds of it, GiB"),
                 text(bytes, "The exact count"),
                 text(width, "As a fraction of the largest line"),
                 flag(first, "The first of the line"));
};

struct LineView {
  PEAKBENCH_VIEW(text(line, "`train.py:42`, without the folder that all files are in"),
                 text(path, "With the whole path"),
                 text(function, "The function that the line is in"),
                 text(gib, "What it holds at the peak"),
                 text(bytes, "The exact count"),
                 text(percent, "Of the peak"),
                 text(count, "How many allocations"),
                 flag(rest, "All other lines together"),
                 list(LineCategoryView, categories, "What it is, in the order of the bars"));
};

struct FlameFrameView {
  PEAKBENCH_VIEW(text(x, "Where it starts, 0 to 1"),
                 text(width, "Its bytes as a fraction of the peak"),
                 text(level, "0 is the outermost frame"),
                 text(label, "Function and line"),
                 text(title, "With its whole path, its bytes and its share"),
                 text(kind, "own, library, unknown"),
                 flag(has_label, "It is wide enough for its label"));
};

struct RangeView {
  PEAKBENCH_VIEW(text(name, "With the ranges around it"),
                 text(highest_gib, "Allocated at the most while it was open"),
                 text(highest_bytes, "The exact count"),
                 text(alive_gib, "Allocated in it and alive at the peak"),
                 text(alive_bytes, "The exact count"),
                 text(percent, "Of the peak"));
};

struct LinesView {
  PEAKBENCH_VIEW(text(gib, "The peak"),
                 list(SentenceView, sentences, "What explains the peak, where it is, what else was "
                      "found"),
                 list(LineView, lines, "Lines of code at the peak, the largest first"),
                 flag(has_called, "One line holds more than half, and calls libraries"),
                 list(LineView, called, "The same bytes by the lines of libraries that made them"),
                 flag(has_ranges, "The program names ranges"),
                 list(RangeView, ranges, "The ranges that the program names, the highest first"),
                 text(more_ranges, "How many are left out; empty: none"),
                 text(pools, "What private pools have reserved, a sentence; empty: nothing"),
                 list(FlameFrameView, frames, "The flame graph: frames from the outermost inwards"),
                 text(levels, "How many levels it has"),
                 text(top, "Levels of the flame graphs above it in the table's picture"));
};

// nullopt where no stacks were recorded. `event`: of the peak.
std::optional<LinesView> lines_view(const trace::Trace& trace,
                                    const std::vector<trace::Lifetime>& lifetimes,
                                    std::uint64_t event);

}  // namespace peakbench::reports
