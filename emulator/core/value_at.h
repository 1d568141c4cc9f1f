// A value at an address that need not be aligned for it.
#pragma once

#include <cstring>

namespace peakbench::emulator {

template <typename Value>
Value value_at(const char* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace peakbench::emulator
