#include "text/wrapped.h"

#include <algorithm>
#include <sstream>

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

std::string hanging(const std::string& head, const std::string& words, int width) {
  constexpr int kLeast = 20;  // columns for words
  const int indent = std::max(0, std::min(display_width(head), width - kLeast));
  std::istringstream lines(wrapped(words, std::max(width - display_width(head), kLeast), 0));
  std::string out = head;
  bool first = true;
  for (std::string line; std::getline(lines, line); first = false)
    out += (first ? "" : std::string(static_cast<std::size_t>(indent), ' ')) + line + "\n";
  return out;
}

}  // namespace peakbench
