// Which bytes of a small allocation were put there by a copy or a fill that the host asked for. The
// others hold zeros: a kernel may have meant to write them, and no kernel runs here.
#pragma once

#include <cstdint>
#include <vector>

namespace peakbench::emulator {

class KeptBytes {
 public:
  void set(std::uint64_t offset, std::uint64_t bytes, bool kept);
  bool all(std::uint64_t offset, std::uint64_t bytes) const;
  bool at(std::uint64_t offset) const;

 private:
  std::vector<bool> bits_;  // grows to the highest byte ever kept
};

}  // namespace peakbench::emulator
