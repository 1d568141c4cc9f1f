// Addresses for device memory: one reserved range without memory behind it, handed out in a fixed
// order.
#pragma once

#include <cstdint>
#include <map>

namespace peakbench::emulator {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Always gives the highest free addresses first. PyTorch's allocator breaks ties between free
// blocks by address. So the order of addresses is part of its behaviour, and must be the same in
// every run.
class AddressSpace {
 public:
  // Reserves at a fixed place, elsewhere or less of it where that is not to be had.
  AddressSpace();
  // 0 when no gap is large enough. `alignment` is a power of two.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);
  // Gives back what `take` returned; its pages lose their contents.
  void give_back(std::uint64_t base, std::uint64_t bytes);
  bool reserved() const { return bytes_ != 0; }
  // Whether an address is one of its own, handed out or not.
  bool holds(std::uint64_t at) const { return at - base_ < bytes_; }

 private:
  std::uint64_t base_ = 0;
  std::uint64_t bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> gaps_;  // start -> bytes
};

// Pages that read as zeros and take memory only once touched; or no access, and their memory given
// back.
bool open_pages(std::uint64_t base, std::uint64_t bytes);
void close_pages(std::uint64_t base, std::uint64_t bytes);

}  // namespace peakbench::emulator
