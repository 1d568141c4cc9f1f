#include "text/columns.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "text/printable.h"

namespace peakbench {
namespace {

int columns_of(char32_t c) {
  const auto in = [c](char32_t from, char32_t to) { return c >= from && c <= to; };
  if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0xFE00, 0xFE0F)) return 0;
  const bool wide = in(0x1100, 0x115F) || in(0x2E80, 0xA4CF) || in(0xAC00, 0xD7A3) ||
                    in(0xF900, 0xFAFF) || in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) ||
                    in(0x1F300, 0x1FAFF) || in(0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

}  // namespace

int display_width(const std::string& text) {
  int width = 0;
  for_each_shown(text,
                 [&](std::string_view character) { width += columns_of(code_point(character)); });
  return width;
}

std::string fit(const std::string& text, int columns) {
  if (display_width(text) <= columns) return text;
  std::string result;
  int width = 0;
  for_each_shown(text, [&](std::string_view character) {
    const int wide = columns_of(code_point(character));
    if (width >= 0 && width + wide <= columns - 1) {
      result += character;
      width += wide;
    } else {
      width = -1;  // full: nothing after the first character that does not fit
    }
  });
  return columns > 0 ? result + "\u2026" : result;
}

std::string fit_middle(const std::string& text, int columns) {
  if (display_width(text) <= columns) return text;
  std::vector<std::pair<std::string, int>> characters;
  for_each_shown(text, [&](std::string_view character) {
    characters.emplace_back(character, columns_of(code_point(character)));
  });
  const int room = std::max(0, columns - 1);
  std::string head, tail;
  int of_tail = 0, of_head = 0;
  for (auto at = characters.rbegin(); at != characters.rend(); ++at) {
    if (of_tail + at->second > room / 2) break;
    tail.insert(0, at->first);
    of_tail += at->second;
  }
  for (const auto& [character, wide] : characters) {
    if (of_head + wide > room - of_tail) break;
    head += character;
    of_head += wide;
  }
  return columns > 0 ? head + "\u2026" + tail : "";
}

}  // namespace peakbench
