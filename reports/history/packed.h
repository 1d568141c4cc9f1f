// Texts in the history file: zlib's format, which Python, Perl and the rest can read as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace peakbench::history {

std::string pack(std::string_view text);
// `bytes`: how long the text was. Throws ConfigError where it is not what was packed.
std::string unpack(const std::string& packed, std::int64_t bytes);

// Finds texts that may be the same; only the texts themselves say that they are.
std::int64_t checksum(std::string_view text);

}  // namespace peakbench::history
