#include "base/printable.h"

#include <fmt/format.h>

namespace peakbench {

std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead < 0xF0) {
    const bool bad = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0);
    return !bad && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead < 0xF5) {
    const bool bad = (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90);
    return !bad && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  char32_t value = first & (0x7FU >> character.size());
  for (const char c : character.substr(1))
    value = value << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return value;
}

namespace {

// What must not reach a page or a terminal as it is: controls, C1 among them; marks that turn the
// direction of writing or take no room, so that two names look the same; line and paragraph
// separators; what XML forbids.
bool is_unprintable(char32_t c) {
  const auto in = [c](char32_t from, char32_t to) { return c >= from && c <= to; };
  const bool control = c < 0x20 || in(0x7F, 0x9F);
  const bool direction =
      c == 0x61C || in(0x200E, 0x200F) || in(0x202A, 0x202E) || in(0x2066, 0x2069);
  const bool no_room = c == 0xAD || in(0x200B, 0x200D) || in(0x2060, 0x2064) || c == 0xFEFF ||
                       in(0xFFF9, 0xFFFB) || in(0xE0000, 0xE007F);
  const bool no_character = (c & 0xFFFEU) == 0xFFFE || in(0xFDD0, 0xFDEF);
  return control || direction || no_room || no_character || in(0x2028, 0x2029);
}

bool continues_sequence(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for_each_character(text, [&](std::string_view character, bool valid) {
    const char32_t c = valid ? code_point(character) : 0;
    if (c == '\n' || c == '\t' || c == '\r') {
      result += ' ';
    } else {
      result += is_unprintable(c) ? kReplacement : character;
    }
  });
  return result;
}

std::string escaped_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view character, bool valid) {
    if (!valid) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
      return;
    }
    const char32_t c = code_point(character);
    if (c == '\n' || !is_unprintable(c)) {
      result += character;
    } else if (c <= 0xFFFF) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {  // the two halves, as JSON has it
      result += fmt::format("\\u{:04x}\\u{:04x}", 0xD800U + ((c - 0x10000U) >> 10U),
                            0xDC00U + ((c - 0x10000U) & 0x3FFU));
    }
  });
  return result;
}

bool is_utf8(const std::string& text) {
  bool all = true;
  for_each_character(text, [&](std::string_view, bool valid) { all = all && valid; });
  return all;
}

std::string escaped_bytes(const std::string& text) {
  std::string escaped;
  for (const unsigned char c : text) {
    if (c < 0x20 || c >= 0x7f)
      escaped += fmt::format("\\x{:02x}", c);
    else
      escaped += static_cast<char>(c);
  }
  return escaped;
}

std::string bounded(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  constexpr std::size_t kLongestSequence = 4;
  auto end = longest;
  while (end + kLongestSequence > longest && end > 0 && continues_sequence(text[end])) --end;
  return fmt::format("{}... ({} bytes left out)", text.substr(0, end), text.size() - end);
}

}  // namespace peakbench
