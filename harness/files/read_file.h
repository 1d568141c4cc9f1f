// Reading files that somebody else made: whole, bounded, and never waiting for anybody.
#pragma once

#include <cstddef>
#include <string>

namespace peakbench::files {

// More than any of its kind has; a file that is larger is something else.
inline constexpr std::size_t kMostSmallText = std::size_t{16} << 20;  // suites, cards, templates
inline constexpr std::size_t kMostRunText = std::size_t{1} << 30;     // run.json

// The bytes of a regular file, links followed. A pipe, a terminal or another device is refused
// without reading from it: a run is made again from its files, and what was read once is not there
// a second time. Throws ConfigError with the path: missing, not readable, a folder, no regular
// file, more than `most_bytes`; HostError where the machine is to blame.
std::string read_regular_file(const std::string& path, std::size_t most_bytes);

}  // namespace peakbench::files
