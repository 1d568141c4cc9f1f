// Texts in the history file: zlib's format, which Python, Perl and the rest can read as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace peakbench::history {

inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;  // of a text

std::string pack(std::string_view text);
// `bytes`: how long the text was. Throws ConfigError where it is not what was packed.
std::string unpack(const std::string& packed, std::int64_t bytes);

// CRC-32: finds texts that may be the same (only the texts themselves say that they are), and texts
// that are no longer what they were.
std::int64_t checksum(std::string_view text);

}  // namespace peakbench::history
