// Texts of any bytes: names of files, arguments. JSON holds UTF-8 and nothing else.
#pragma once

#include <string>

namespace peakbench {

bool is_utf8(const std::string& text);

// For messages about what is not UTF-8: bytes above 7F and control characters as \xNN.
std::string escaped_bytes(const std::string& text);

}  // namespace peakbench
