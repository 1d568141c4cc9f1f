// A comparison's figures in words, the same in text, Markdown and HTML.
#pragma once

#include <string>

#include "reports/compare/compare.h"

namespace peakbench::compare {

// "+512 bytes", "+0.010 GiB (+10,737,418 bytes)", "none".
std::string difference_text(std::int64_t bytes);
std::string short_difference(std::int64_t bytes);  // "+512 bytes", "+0.010 GiB", "0"
std::string bytes_text(std::int64_t bytes);        // "0.572 GiB (613,756,452 bytes)"

// "activation, allocated in forward, in encoder.layers.0, by aten::empty".
std::string part_text(const Growth& part);

// "+4.9% (+4.1% to +5.7%), 20 pairs"; `unit` is what a sample is.
std::string ratio_text(double ratio);  // "+4.9%", "0.0%"
std::string speed_text(const SpeedDifference& difference, const char* unit);

// "1 still failing, 2 new": the cases that were not compared, counted; empty where all were.
std::string states_text(const Comparison& comparison);
// "memory: 1 worse, 3 the same; cases: 1 new": what happened, in one line.
std::string summary_text(const Comparison& comparison);

// "figures are no longer exact: unreliable (was exact), as aten::nonzero read ...".
std::string verdict_text(const VerdictChange& change);

// What became of a case, in a word or two: "worse", "failed: out of memory", "new".
std::string state_text(const CaseComparison& one);

// "steps: 1 -> 3", "cudnn: on -> off (2 cases)".
std::string change_text(const Change& change);

// "peak allocated", "optimizer step requested", "peak of cpu allocated".
std::string figure_name(const Measure& measure);
// Its change and the exact bytes: "peak allocated +512 bytes (4,000 -> 4,512 bytes)".
std::string figure_text(const Measure& measure);

// Why a figure moved, parts that sum to its change: "in optimizer step: gradient +954,368 bytes:
// encoder.layers.*, 5 tensors more; temporary +245,760 bytes: aten::sqrt, 2 tensors more". What is
// not named is counted at the end.
std::string explanation_text(const PhaseGrowth& growth, const Measure& measure);
// "at the maximum of forward", "at the peak, in optimizer step (in BASE in forward)".
std::string where_text(const PhaseGrowth& growth, bool at_peak);

// "+1.200 GiB at train.py:42 (forward)".
std::string line_text(const LineChange& change);

// The line that explains a part where nothing of it is known.
std::string named(const std::string& text, const char* otherwise);

}  // namespace peakbench::compare
