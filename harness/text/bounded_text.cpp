#include "text/bounded_text.h"

#include <fmt/format.h>

namespace peakbench {
namespace {

bool continues_sequence(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string bounded(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  constexpr std::size_t kLongestSequence = 4;
  auto end = longest;
  while (end + kLongestSequence > longest && end > 0 && continues_sequence(text[end])) --end;
  return fmt::format("{}... ({} bytes left out)", text.substr(0, end), text.size() - end);
}

}  // namespace peakbench
