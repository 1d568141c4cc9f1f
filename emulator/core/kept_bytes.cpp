#include "core/kept_bytes.h"

#include <algorithm>

namespace peakbench::emulator {

void KeptBytes::set(std::uint64_t offset, std::uint64_t bytes, bool kept) {
  if (kept && bits_.size() < offset + bytes) bits_.resize(offset + bytes);
  const auto end = std::min<std::uint64_t>(offset + bytes, bits_.size());
  if (offset < end) std::fill(bits_.begin() + offset, bits_.begin() + end, kept);
}

bool KeptBytes::all(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset + bytes > bits_.size()) return bytes == 0;
  const auto first = bits_.begin() + offset;
  return std::find(first, first + bytes, false) == first + bytes;
}

bool KeptBytes::at(std::uint64_t offset) const { return offset < bits_.size() && bits_[offset]; }

}  // namespace peakbench::emulator
