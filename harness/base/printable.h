#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace peakbench {

// Text made safe to show: names come from plugins, suites, files and command lines, and may hold
// anything.

// Bytes of the valid UTF-8 character at `at`; 0 if it is invalid (also overlong forms and
// surrogates).
std::size_t character_length(std::string_view text, std::size_t at);

// Replaces an invalid byte, and a character that is not shown.
inline constexpr std::string_view kReplacement = "\uFFFD";

// Calls `visit(text, valid)` with each character and each invalid byte.
template <typename Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    visit(text.substr(at, length ? length : 1), length > 0);
    at += length ? length : 1;
  }
}

// Calls `visit(text)` with each character as displayed: kReplacement for an invalid byte.
template <typename Visit>
void for_each_shown(std::string_view text, Visit visit) {
  for_each_character(text, [&](std::string_view character, bool valid) {
    visit(valid ? character : kReplacement);
  });
}

// Of one valid character.
char32_t code_point(std::string_view character);

// One line of valid UTF-8 for a page, a table or a message. Each unprintable character and each
// invalid byte becomes U+FFFD; newline and tab become a space.
std::string printable(std::string_view text);

// The same for a stream of lines: newlines stay, and what is unprintable can be read: \u001b, or
// \xff for a byte that is no UTF-8. In JSON that is the same text in another spelling.
std::string escaped_controls(std::string_view text);

// Texts of any bytes: names of files, arguments. JSON holds UTF-8 and nothing else.

bool is_utf8(const std::string& text);

// For messages about what is not UTF-8: bytes above 7F and control characters as \xNN.
std::string escaped_bytes(const std::string& text);

// Shortens texts from plugins, such as messages and names.

inline constexpr std::size_t kLongestText = 4096;  // bytes

// `text`, or of a longer text its first `longest` bytes in complete UTF-8 sequences and "... (N
// bytes left out)".
std::string bounded(std::string_view text, std::size_t longest = kLongestText);

}  // namespace peakbench
