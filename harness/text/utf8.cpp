#include "text/utf8.h"

#include <fmt/format.h>

#include "text/printable.h"

namespace peakbench {

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

}  // namespace peakbench
