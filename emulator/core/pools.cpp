#include "core/pools.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "core/own_ledger.h"
#include "core/state.h"
#include "core/symbols.h"

namespace peakbench::emulator {

void PoolSpace::add_chunk(std::uint64_t base, std::uint64_t bytes) {
  chunks_[base] = free_[base] = bytes;
  bytes_ += bytes;
  free_bytes_ += bytes;
}

std::uint64_t PoolSpace::take(std::uint64_t bytes) {
  auto best = free_.end();
  for (auto piece = free_.begin(); piece != free_.end(); ++piece) {
    if (piece->second < bytes) continue;
    if (best == free_.end() || piece->second < best->second) best = piece;
  }
  if (best == free_.end()) return 0;
  const auto [base, size] = *best;
  free_.erase(best);
  if (size > bytes) free_[base + bytes] = size - bytes;
  free_bytes_ -= bytes;
  return base;
}

void PoolSpace::give_back(std::uint64_t base, std::uint64_t bytes) {
  free_bytes_ += bytes;
  const auto next = free_.lower_bound(base);
  if (next != free_.end() && next->first == base + bytes && !chunks_.contains(next->first)) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(base);
  if (after != free_.begin() && !chunks_.contains(base)) {
    const auto before = std::prev(after);
    if (before->first + before->second == base) {
      before->second += bytes;
      return;
    }
  }
  free_[base] = bytes;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> PoolSpace::remove_free_chunk() {
  auto largest = chunks_.end();
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    const auto piece = free_.find(chunk->first);
    if (piece == free_.end() || piece->second != chunk->second) continue;
    if (largest == chunks_.end() || chunk->second > largest->second) largest = chunk;
  }
  if (largest == chunks_.end()) return std::nullopt;
  const auto removed = *largest;
  free_.erase(removed.first);
  chunks_.erase(largest);
  bytes_ -= removed.second;
  free_bytes_ -= removed.second;
  return removed;
}

std::pair<std::uint64_t, std::uint64_t> PoolSpace::chunk_of(std::uint64_t address) const {
  return *std::prev(chunks_.upper_bound(address));
}

namespace {

constexpr std::uint64_t kPools = 0x1e0000000000;  // where no allocation lives
constexpr std::uint64_t kPoolsOfPrograms = kPools + kMaxDevices;
constexpr std::uint64_t kPiece = 512;
constexpr std::uint64_t kStep = 32ull << 20;

// A device's own comes into being with its first use. Call with the mutex held.
Pool* find_pool(State& s, std::uint64_t pool) {
  const auto found = s.memory.pools.find(pool);
  if (found != s.memory.pools.end()) return found->second.destroyed ? nullptr : &found->second;
  if (pool < kPools || pool - kPools >= static_cast<std::uint64_t>(s.card.count)) return nullptr;
  Pool& fresh = s.memory.pools[pool];
  fresh.device = static_cast<int>(pool - kPools);
  return &fresh;
}

// PyTorch's allocator counts what its device's own pool does (CUDAMallocAsyncAllocator.cpp,
// getDeviceStats); what it resets, the ledger keeps.
void count(State& s, std::uint64_t id, const Pool& pool) {
  if (!s.pytorch_uses_pools || id != default_pool(pool.device)) return;
  LedgerDevice& row = s.ledger->devices[pool.device];
  s.ledger->counts_known = 1;
  row.peak_allocated_bytes = std::max(row.peak_allocated_bytes, pool.figures.used);
  row.peak_reserved_bytes = std::max(row.peak_reserved_bytes, pool.figures.reserved);
}

void set_reserved(Pool& pool) {
  pool.figures.reserved = pool.space.bytes();
  pool.figures.peak_reserved = std::max(pool.figures.peak_reserved, pool.figures.reserved);
}

void trim(State& s, Pool& pool, std::uint64_t bytes) {
  while (pool.figures.reserved > bytes) {
    const auto chunk = pool.space.remove_free_chunk();
    if (!chunk) return;
    set_reserved(pool);
    close_pages(chunk->first, chunk->second);
    s.memory.addresses.give_back(chunk->first, chunk->second);
    discharge(s, pool.device, Charge::malloc_memory, chunk->second);
  }
}

bool add_chunk(State& s, Pool& pool, std::uint64_t bytes) {
  if (pool.most_bytes && pool.figures.reserved + bytes > pool.most_bytes) return false;
  if (!try_charge(s, pool.device, Charge::malloc_memory, bytes)) return false;
  const auto base = s.memory.addresses.take(bytes, kPage);
  if (!base) {
    discharge(s, pool.device, Charge::malloc_memory, bytes);
    no_host_memory(s, bytes, MemoryResult::no_address_space);
    return false;
  }
  pool.space.add_chunk(base, bytes);
  set_reserved(pool);
  return true;
}

// Near the end of the device's memory smaller steps are taken, and memory of other sizes is given
// back first.
bool grow(State& s, Pool& pool, std::uint64_t bytes) {
  if (add_chunk(s, pool, round_up(bytes, kStep))) return true;
  if (add_chunk(s, pool, round_up(bytes, kPage))) return true;
  trim(s, pool, 0);
  return add_chunk(s, pool, round_up(bytes, kPage));
}

void note_no_memory(State& s, const Pool& pool, std::uint64_t bytes) {
  note_refusal(s, pool.device, round_up(bytes, kPage));
  if (!s.pytorch_uses_pools) return;
  LedgerDevice& row = s.ledger->devices[pool.device];
  ++row.out_of_memory_calls;
  row.last_needed_bytes = pool.figures.used + bytes;
  row.largest_needed_bytes = std::max(row.largest_needed_bytes, row.last_needed_bytes);
}

// Small pieces keep bytes, as small allocations do.
void add_piece(State& s, std::uint64_t id, Pool& pool, std::uint64_t base, std::uint64_t bytes) {
  Range piece{MemoryKind::device, pool.device, bytes};
  piece.ordinal = ++s.memory.next_ordinal;
  piece.pool = id;
  const auto chunk = pool.space.chunk_of(base);
  if (bytes <= kKeptBytes && open_pages(chunk.first, chunk.second))
    piece.kept = std::make_unique<KeptBytes>();
  s.memory.ranges.insert_or_assign(base, std::move(piece));
}

}  // namespace

void give_back_piece(State& s, std::uint64_t base, const Range& piece) {
  const auto found = s.memory.pools.find(piece.pool);
  Pool& pool = found->second;
  pool.space.give_back(base, piece.bytes);
  pool.figures.used -= piece.bytes;
  s.ledger->devices[pool.device].pool_bytes -= piece.bytes;
  if (!pool.destroyed || pool.space.in_use()) return;
  trim(s, pool, 0);
  s.memory.pools.erase(found);
}

void trim_pools_to_thresholds() {
  auto [s, lock] = LockedState{};
  for (auto& [id, pool] : s.memory.pools) trim(s, pool, pool.release_threshold);
}

std::uint64_t default_pool(int device) { return kPools + static_cast<std::uint64_t>(device); }

std::uint64_t create_pool(int device, std::uint64_t most_bytes) {
  auto [s, lock] = LockedState{};
  const auto id = kPoolsOfPrograms + s.memory.next_pool++;
  Pool& pool = s.memory.pools[id];
  pool.device = device;
  pool.most_bytes = most_bytes;
  return id;
}

bool destroy_pool(std::uint64_t id) {
  auto [s, lock] = LockedState{};
  Pool* pool = find_pool(s, id);
  if (!pool || id == default_pool(pool->device)) return false;
  auto& current = s.memory.current_pools;
  std::erase_if(current, [&](const auto& of_device) { return of_device.second == id; });
  trim(s, *pool, 0);
  pool->destroyed = true;
  if (!pool->space.in_use()) s.memory.pools.erase(id);
  return true;
}

bool pool_exists(std::uint64_t id) {
  auto [s, lock] = LockedState{};
  return find_pool(s, id) != nullptr;
}

std::uint64_t current_pool(int device) {
  auto [s, lock] = LockedState{};
  const auto set = s.memory.current_pools.find(device);
  return set == s.memory.current_pools.end() ? default_pool(device) : set->second;
}

bool set_current_pool(int device, std::uint64_t id) {
  auto [s, lock] = LockedState{};
  const Pool* pool = find_pool(s, id);
  if (!pool || pool->device != device) return false;
  s.memory.current_pools[device] = id;
  return true;
}

namespace {

MemoryResult take_piece(std::uint64_t id, std::uint64_t size, void** out) {
  auto [s, lock] = LockedState{};
  Pool* pool = find_pool(s, id);
  if (!pool) return MemoryResult::invalid_value;
  auto base = pool->space.take(size);
  if (!base) {
    if (!grow(s, *pool, size)) {
      note_no_memory(s, *pool, size);
      return MemoryResult::out_of_memory;
    }
    base = pool->space.take(size);
  }
  add_piece(s, id, *pool, base, size);
  pool->figures.used += size;
  pool->figures.peak_used = std::max(pool->figures.peak_used, pool->figures.used);
  LedgerDevice& row = s.ledger->devices[pool->device];
  row.pool_bytes += size;
  row.peak_pool_bytes = std::max(row.peak_pool_bytes, row.pool_bytes);
  count(s, id, *pool);
  *out = reinterpret_cast<void*>(base);
  return MemoryResult::ok;
}

}  // namespace

MemoryResult allocate_from_pool(std::uint64_t id, std::uint64_t bytes, void** out) {
  const auto size = round_up(std::clamp<std::uint64_t>(bytes, 1, 1ull << 60), kPiece);
  const auto result = take_piece(id, size, out);
  if (result == MemoryResult::out_of_memory) enter_out_of_memory(size);
  if (result == MemoryResult::ok) tell_of_piece(reinterpret_cast<std::uint64_t>(*out), size);
  return result;
}

PoolFigures pool_figures(std::uint64_t id) {
  auto [s, lock] = LockedState{};
  const Pool* pool = find_pool(s, id);
  return pool ? pool->figures : PoolFigures{};
}

void reset_peak(std::uint64_t id, std::uint64_t PoolFigures::*peak,
                std::uint64_t PoolFigures::*current) {
  auto [s, lock] = LockedState{};
  if (Pool* pool = find_pool(s, id)) pool->figures.*peak = pool->figures.*current;
}

std::uint64_t release_threshold(std::uint64_t id) {
  auto [s, lock] = LockedState{};
  const Pool* pool = find_pool(s, id);
  return pool ? pool->release_threshold : 0;
}

void set_release_threshold(std::uint64_t id, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  if (Pool* pool = find_pool(s, id)) pool->release_threshold = bytes;
}

void trim_pool(std::uint64_t id, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  if (Pool* pool = find_pool(s, id)) trim(s, *pool, bytes);
}

void pool_is_used_by(const void* caller) {
  // Allocators call it from one place.
  static std::atomic<const void*> seen{nullptr};
  if (seen.exchange(caller, std::memory_order_relaxed) == caller) return;
  if (!lies_in(caller, "libc10_cuda.so")) return;
  auto [s, lock] = LockedState{};
  s.pytorch_uses_pools = true;
}

}  // namespace peakbench::emulator
