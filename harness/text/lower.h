#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace peakbench {

// A to Z as a to z; all else as it is.
inline std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

}  // namespace peakbench
