#include "reports/compare/page.h"

#include <algorithm>

#include "reports/render/text.h"

namespace peakbench::compare {
namespace {

// As many whole characters as fit into `columns`, one at least.
std::size_t bytes_within(const std::string& text, int columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    auto next = bytes + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    if (bytes > 0 && reports::display_width(text.substr(0, next)) > columns) break;
    bytes = next;
  }
  return bytes;
}

std::string blanks(int count) {
  return std::string(static_cast<std::size_t>(std::max(0, count)), ' ');
}

}  // namespace

Page::Page(int width) : width_(std::max(width, 30)) {}

void Page::emit(int indent, const std::string& text) {
  text_ += blanks(indent) + text;
  text_.erase(text_.find_last_not_of(' ') + 1);
  text_ += "\n";
}

void Page::line(int indent, const std::string& text) {
  std::string current;
  int at = indent;
  const auto next_line = [&] {
    emit(at, current);
    current.clear();
    at = indent + 2;
  };
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    auto word = text.substr(begin, end - begin);
    begin = end + 1;
    const auto together = current.empty() ? word : current + " " + word;
    if (at + reports::display_width(together) <= width_) {
      current = together;
      continue;
    }
    if (!current.empty()) next_line();
    while (at + reports::display_width(word) > width_) {
      current = word.substr(0, bytes_within(word, width_ - at));
      word.erase(0, current.size());
      next_line();
    }
    current = word;
  }
  if (!current.empty()) emit(at, current);
}

std::string left(const std::string& text, int width) {
  return text + blanks(width - reports::display_width(text));
}

std::string right(const std::string& text, int width) {
  return blanks(width - reports::display_width(text)) + text;
}

}  // namespace peakbench::compare
