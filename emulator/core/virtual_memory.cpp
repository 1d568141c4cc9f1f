// Virtual memory management: addresses reserved, memory created, one mapped into the other. What
// PyTorch's expandable segments are made of.
#include <algorithm>
#include <iterator>

#include "core/free_memory.h"
#include "core/state.h"

namespace peakbench::emulator {
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

// Nobody holds it and nothing maps it: the card has it back.
void drop_if_unused(State& s, std::uint64_t handle) {
  auto found = s.memory.physical.find(handle);
  const PhysicalMemory& memory = found->second;
  if (memory.holders > 0 || memory.mappings > 0) return;
  discharge(s, memory.device, Charge::virtual_memory, memory.bytes);
  s.memory.physical.erase(found);
}

bool take_memory(int device, std::uint64_t bytes, std::uint64_t* handle) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!charge(s, device, Charge::virtual_memory, bytes)) return false;
  *handle = ++s.memory.next_handle;
  s.memory.physical[*handle] = {device, bytes};
  return true;
}

}  // namespace

MemoryResult reserve_addresses(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t* out) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!bytes || bytes % kPage || (alignment & (alignment - 1))) return MemoryResult::invalid_value;
  const auto base = s.memory.addresses.take(bytes, std::max(alignment, kPage));
  if (!base) return no_host_memory(s, bytes, MemoryResult::out_of_memory);
  s.memory.reservations[base] = bytes;
  *out = base;
  return MemoryResult::ok;
}

MemoryResult free_addresses(std::uint64_t base, std::uint64_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
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
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.memory.physical.find(handle);
  if (found == s.memory.physical.end()) return MemoryResult::invalid_value;
  ++found->second.holders;
  return MemoryResult::ok;
}

MemoryResult release_memory(std::uint64_t handle) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.memory.physical.find(handle);
  if (found == s.memory.physical.end() || found->second.holders == 0)
    return MemoryResult::invalid_value;
  --found->second.holders;
  drop_if_unused(s, handle);
  return MemoryResult::ok;
}

MemoryResult memory_of_handle(std::uint64_t handle, int* device, std::uint64_t* bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.memory.physical.find(handle);
  if (found == s.memory.physical.end()) return MemoryResult::invalid_value;
  *device = found->second.device;
  *bytes = found->second.bytes;
  return MemoryResult::ok;
}

MemoryResult map_memory(std::uint64_t base, std::uint64_t bytes, std::uint64_t offset,
                        std::uint64_t handle) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.memory.physical.find(handle);
  if (found == s.memory.physical.end() || !bytes || base % kPage || bytes % kPage ||
      offset % kPage) {
    return MemoryResult::invalid_value;
  }
  PhysicalMemory& memory = found->second;
  if (offset > memory.bytes || bytes > memory.bytes - offset || !in_a_reservation(s, base, bytes) ||
      overlaps_a_range(s, base, bytes)) {
    return MemoryResult::invalid_value;
  }
  Range range{MemoryKind::mapping, memory.device, bytes, handle, ++s.memory.next_ordinal};
  // The bytes belong to the mapping: memory that is mapped twice does not show at one place what
  // was put at the other.
  if (bytes <= kKeptBytes && open_pages(base, bytes)) range.kept = std::make_unique<KeptBytes>();
  s.memory.ranges.insert_or_assign(base, std::move(range));
  ++memory.mappings;
  return MemoryResult::ok;
}

MemoryResult unmap_memory(std::uint64_t base, std::uint64_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
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
    --s.memory.physical.find(handle)->second.mappings;
    drop_if_unused(s, handle);
  }
  ranges.erase(first, past);
  return MemoryResult::ok;
}

}  // namespace peakbench::emulator
