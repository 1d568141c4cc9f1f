// Words in lines.
#pragma once

#include <limits>
#include <string>

namespace peakbench {

inline constexpr int kUnbroken = std::numeric_limits<int>::max();  // a width

// Broken between words so that no line takes more than `width` columns of a terminal. Lines after
// the first begin with `indent` spaces; a word that is wider is cut. Ends with a newline.
std::string wrapped(const std::string& words, int width, int indent = 2);

// Words behind a head, "  name  ", and in the lines after the first below where they began.
std::string hanging(const std::string& head, const std::string& words, int width);

}  // namespace peakbench
