// Texts that plugins write, kept short: a message or a name is for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace peakbench {

inline constexpr std::size_t kLongestText = 4096;  // bytes

// `text`; or of a longer one its beginning, up to `longest` bytes of whole UTF-8 sequences, and
// "... (N bytes left out)".
std::string bounded(std::string_view text, std::size_t longest = kLongestText);

}  // namespace peakbench
