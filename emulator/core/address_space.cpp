#include "core/address_space.h"

#include <sys/mman.h>

#include <cstdio>
#include <iterator>

#include "core/memory.h"

namespace peakbench::emulator {
namespace {

// Far from where Linux puts programs (0x55...), libraries (0x7f...) and sanitizers their shadows.
constexpr std::uint64_t kBase = 0x200000000000;  // 32 TiB
constexpr std::uint64_t kBytes =
    48ull << 40;  // for cards of up to 16 TiB and several pools of expandable segments

void* reserve(std::uint64_t base, std::uint64_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (base ? MAP_FIXED_NOREPLACE : 0);
  void* at = mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE, flags, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

AddressSpace::AddressSpace() {
  void* at = reserve(kBase, kBytes);
  // A limit on address space (ulimit -v) may leave room for less.
  for (std::uint64_t bytes = kBytes; !at && bytes >= (1ull << 30); bytes /= 2) {
    at = reserve(0, bytes);
    if (at) bytes_ = bytes;
  }
  if (!at) {
    std::fprintf(stderr, "peakbench emulator: cannot reserve address space (see `ulimit -v`)\n");
    return;
  }
  if (!bytes_) bytes_ = kBytes;
  base_ = reinterpret_cast<std::uint64_t>(at);
  const auto aligned = round_up(base_, kPage);
  // The last page is never handed out: what runs past the highest allocation is seen to.
  gaps_[aligned] = bytes_ - (aligned - base_) - kPage;
}

std::uint64_t AddressSpace::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (auto gap = gaps_.rbegin(); gap != gaps_.rend(); ++gap) {
    const auto [start, size] = *gap;
    if (bytes > size) continue;
    const auto end = start + size;
    const auto at = (end - bytes) & ~(alignment - 1);
    if (at < start) continue;
    gaps_.erase(std::prev(gap.base()));
    if (at > start) gaps_[start] = at - start;
    if (at + bytes < end) gaps_[at + bytes] = end - (at + bytes);
    return at;
  }
  return 0;
}

void AddressSpace::give_back(std::uint64_t base, std::uint64_t bytes) {
  auto next = gaps_.lower_bound(base);
  if (next != gaps_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == base) {
      base = before->first;
      bytes += before->second;
      gaps_.erase(before);
    }
  }
  if (next != gaps_.end() && base + bytes == next->first) {
    bytes += next->second;
    gaps_.erase(next);
  }
  gaps_[base] = bytes;
}

bool open_pages(std::uint64_t base, std::uint64_t bytes) {
  return mprotect(reinterpret_cast<void*>(base), bytes, PROT_READ | PROT_WRITE) == 0;
}

void close_pages(std::uint64_t base, std::uint64_t bytes) {
  // A new mapping over the old one: its pages are dropped at once and read as zeros when next
  // opened.
  static_cast<void>(mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

}  // namespace peakbench::emulator
