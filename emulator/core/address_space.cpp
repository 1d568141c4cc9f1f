#include "core/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "core/memory.h"
#include "core/own_ledger.h"
#include "core/state.h"

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

// Virtual memory management: addresses reserved, memory created, one mapped into the other. What
// PyTorch's expandable segments are made of.

namespace {

bool in_a_reservation(State& s, std::uint64_t base, std::uint64_t bytes) {
  auto next = s.memory.reservations.upper_bound(base);
  if (next == s.memory.reservations.begin()) return false;
  const auto [start, size] = *std::prev(next);
  return base - start < size && bytes <= size - (base - start);
}

bool overlaps_a_range(State& s, std::uint64_t base, std::uint64_t bytes) {
  auto next = s.memory.ranges.lower_bound(base);
  if (next != s.memory.ranges.end() && next->first < base + bytes) return true;
  return find_range(s, reinterpret_cast<void*>(base)) != s.memory.ranges.end();
}

PhysicalMemory* find_memory(State& s, std::uint64_t handle) {
  const auto found = s.memory.physical.find(handle);
  return found == s.memory.physical.end() ? nullptr : &found->second;
}

// Nobody holds it and nothing maps it: the card has it back.
void drop_if_unused(State& s, std::uint64_t handle) {
  const PhysicalMemory& memory = *find_memory(s, handle);
  if (memory.holders > 0 || memory.mappings > 0) return;
  discharge(s, memory.device, Charge::virtual_memory, memory.bytes);
  s.memory.physical.erase(handle);
}

bool take_memory(int device, std::uint64_t bytes, std::uint64_t* handle) {
  auto [s, lock] = LockedState{};
  if (!charge(s, device, Charge::virtual_memory, bytes)) return false;
  *handle = ++s.memory.next_handle;
  s.memory.physical[*handle] = {device, bytes};
  return true;
}

}  // namespace

MemoryResult reserve_addresses(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* out) {
  auto [s, lock] = LockedState{};
  if (!bytes || bytes % kPage || (alignment & (alignment - 1))) return MemoryResult::invalid_value;
  const auto base = s.memory.addresses.take(bytes, std::max(alignment, kPage));
  if (!base) return no_host_memory(s, bytes, MemoryResult::out_of_memory);
  s.memory.reservations[base] = bytes;
  *out = base;
  return MemoryResult::ok;
}

MemoryResult free_addresses(std::uint64_t base, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  auto found = s.memory.reservations.find(base);
  if (found == s.memory.reservations.end() || found->second != bytes ||
      overlaps_a_range(s, base, bytes)) {
    return MemoryResult::invalid_value;
  }
  s.memory.reservations.erase(found);
  s.memory.addresses.give_back(base, bytes);
  return MemoryResult::ok;
}

MemoryResult create_memory(int device, std::uint64_t bytes, std::uint64_t* handle) {
  if (!bytes || bytes % kPage) return MemoryResult::invalid_value;
  if (take_memory(device, bytes, handle)) return MemoryResult::ok;
  enter_out_of_memory(bytes);
  return MemoryResult::out_of_memory;
}

MemoryResult retain_memory(std::uint64_t handle) {
  auto [s, lock] = LockedState{};
  PhysicalMemory* memory = find_memory(s, handle);
  if (!memory) return MemoryResult::invalid_value;
  ++memory->holders;
  return MemoryResult::ok;
}

MemoryResult release_memory(std::uint64_t handle) {
  auto [s, lock] = LockedState{};
  PhysicalMemory* memory = find_memory(s, handle);
  if (!memory || memory->holders == 0) return MemoryResult::invalid_value;
  --memory->holders;
  drop_if_unused(s, handle);
  return MemoryResult::ok;
}

MemoryResult memory_of_handle(std::uint64_t handle, int* device, std::uint64_t* bytes) {
  auto [s, lock] = LockedState{};
  const PhysicalMemory* memory = find_memory(s, handle);
  if (!memory) return MemoryResult::invalid_value;
  *device = memory->device;
  *bytes = memory->bytes;
  return MemoryResult::ok;
}

MemoryResult map_memory(std::uint64_t base, std::uint64_t bytes, std::uint64_t offset,
                        std::uint64_t handle) {
  auto [s, lock] = LockedState{};
  PhysicalMemory* memory = find_memory(s, handle);
  if (!memory || !bytes || base % kPage || bytes % kPage || offset % kPage ||
      offset > memory->bytes || bytes > memory->bytes - offset ||
      !in_a_reservation(s, base, bytes) || overlaps_a_range(s, base, bytes))
    return MemoryResult::invalid_value;
  Range range{MemoryKind::mapping, memory->device, bytes, handle, ++s.memory.next_ordinal};
  // The bytes belong to the mapping: memory that is mapped twice does not show at one place what
  // was put at the other.
  if (bytes <= kKeptBytes && open_pages(base, bytes)) range.kept = std::make_unique<KeptBytes>();
  s.memory.ranges.insert_or_assign(base, std::move(range));
  ++memory->mappings;
  return MemoryResult::ok;
}

MemoryResult unmap_memory(std::uint64_t base, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  auto& ranges = s.memory.ranges;
  // Whole mappings only, as the driver has it; one call may cover several that lie side by side.
  const auto first = ranges.find(base);
  auto past = first;
  std::uint64_t covered = 0;
  for (; past != ranges.end() && covered < bytes; ++past) {
    if (past->second.kind != MemoryKind::mapping || past->first != base + covered) break;
    covered += past->second.bytes;
  }
  if (first == ranges.end() || covered != bytes) return MemoryResult::invalid_value;
  for (auto range = first; range != past; ++range) {
    if (range->second.kept) close_pages(range->first, range->second.bytes);
    const auto handle = range->second.handle;
    --find_memory(s, handle)->mappings;
    drop_if_unused(s, handle);
  }
  ranges.erase(first, past);
  return MemoryResult::ok;
}

}  // namespace peakbench::emulator
