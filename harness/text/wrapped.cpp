#include "text/wrapped.h"

#include <algorithm>

#include "text/columns.h"

namespace peakbench {

std::string wrapped(const std::string& words, int width, int indent) {
  std::string out, line;
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find(' ', begin), words.size());
    const auto word = fit(words.substr(begin, end - begin), width - indent);
    begin = end + 1;
    if (!line.empty() && display_width(line + " " + word) > width) {
      out += line + "\n";
      line = std::string(static_cast<std::size_t>(indent), ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

}  // namespace peakbench
