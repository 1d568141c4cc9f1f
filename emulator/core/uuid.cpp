#include "core/uuid.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace peakbench::emulator {

void uuid_of_card(int card, unsigned char* out) {
  constexpr std::string_view kName = "peakbench-emul-";
  std::copy(kName.begin(), kName.end(), out);
  out[kName.size()] = static_cast<unsigned char>(card);
}

std::string uuid_text(int card) {
  unsigned char bytes[16];
  uuid_of_card(card, bytes);
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    std::snprintf(digits, sizeof digits, dash ? "-%02x" : "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

}  // namespace peakbench::emulator
