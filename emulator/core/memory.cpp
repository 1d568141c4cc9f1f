#include "core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/own_ledger.h"
#include "core/state.h"

namespace peakbench::emulator {

void KeptBytes::forget(std::uint64_t offset, std::uint64_t bytes) {
  const auto end = offset + bytes;
  auto run = runs_.upper_bound(offset);
  if (run != runs_.begin() && std::prev(run)->second.end > offset) run = std::prev(run);
  while (run != runs_.end() && run->first < end) {
    const auto [start, known] = *run;
    run = runs_.erase(run);
    if (start < offset) runs_[start] = {offset, known.when};
    if (known.end > end) runs_[end] = known;
  }
}

void KeptBytes::put(std::uint64_t offset, std::uint64_t bytes, std::uint64_t when) {
  if (!bytes) return;
  forget(offset, bytes);
  runs_[offset] = {offset + bytes, when};
}

std::optional<std::uint64_t> KeptBytes::since(std::uint64_t offset, std::uint64_t bytes) const {
  auto run = runs_.upper_bound(offset);
  if (run == runs_.begin()) return std::nullopt;
  --run;
  std::uint64_t oldest = run->second.when;
  for (auto at = offset; at < offset + bytes; ++run) {
    if (run == runs_.end() || run->first > at || run->second.end <= at) return std::nullopt;
    oldest = std::min(oldest, run->second.when);
    at = run->second.end;
  }
  return oldest;
}

std::vector<KeptBytes::Piece> KeptBytes::pieces(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<Piece> found;
  auto run = runs_.upper_bound(offset);
  if (run != runs_.begin()) --run;
  for (; run != runs_.end() && run->first < offset + bytes; ++run) {
    const auto start = std::max(run->first, offset);
    const auto end = std::min(run->second.end, offset + bytes);
    if (start < end) found.push_back({start, end - start, run->second.when});
  }
  return found;
}

void KeptBytes::copy(std::uint64_t to, const KeptBytes* from, std::uint64_t from_offset,
                     std::uint64_t bytes) {
  // Gathered first: the two may be the same.
  const auto known = from ? from->pieces(from_offset, bytes) : std::vector<Piece>();
  forget(to, bytes);
  for (const Piece& piece : known) put(to + (piece.offset - from_offset), piece.bytes, piece.when);
}

// cudaMalloc and its kin, page-locked host memory, and what is charged to a card.

namespace {

constexpr std::uint64_t kHostPage = 4096;

void raise(std::uint64_t& value, std::uint64_t& peak, std::uint64_t bytes) {
  value += bytes;
  peak = std::max(peak, value);
}

Range& add_range(State& state, std::uint64_t base, MemoryKind kind, int device,
                 std::uint64_t bytes) {
  Range range{kind, device, bytes};
  range.ordinal = ++state.memory.next_ordinal;
  return state.memory.ranges.insert_or_assign(base, std::move(range)).first->second;
}

// For tests: pages without access after each allocation, so that who writes past one is stopped.
std::uint64_t guard(std::uint64_t unit) {
  static const bool wanted = std::getenv(kGuardVariable) != nullptr;
  return wanted ? unit : 0;
}

void* map_host(std::uint64_t bytes) {
  const auto past = guard(kHostPage);
  void* at = mmap(nullptr, bytes + past, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (past) mprotect(static_cast<char*>(at) + bytes, past, PROT_NONE);
  return at;
}

}  // namespace

std::map<std::uint64_t, Range>::iterator find_range(State& state, const void* address) {
  auto& ranges = state.memory.ranges;
  const auto at = reinterpret_cast<std::uint64_t>(address);
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return ranges.end();
  auto range = std::prev(next);
  return at - range->first < range->second.bytes ? range : ranges.end();
}

void clear_host(State& state, char* at, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(at), end = begin + bytes;
  const auto first = round_up(begin, kHostPage), last = end / kHostPage * kHostPage;
  const auto found = find_range(state, at);
  const bool ours = found != state.memory.ranges.end() &&
                    found->second.kind == MemoryKind::pinned &&
                    end <= found->first + found->second.bytes;
  if (!ours || first >= last ||
      madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) {
    std::memset(at, 0, bytes);
    return;
  }
  std::memset(at, 0, first - begin);
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

namespace {

bool has_room(State& state, const LedgerDevice& row, std::uint64_t bytes) {
  const auto limit = row.total_bytes - std::min(row.total_bytes, state.card.context_bytes);
  if (bytes > limit || row.used_bytes > limit - bytes) return false;
  return !state.share || state.share->take(static_cast<int>(row.card), bytes,
                                           state.card.context_bytes, row.total_bytes);
}

}  // namespace

bool charge(State& state, int device, Charge kind, std::uint64_t bytes) {
  if (try_charge(state, device, kind, bytes)) return true;
  note_refusal(state, device, bytes);
  return false;
}

void note_refusal(State& state, int device, std::uint64_t bytes) {
  LedgerDevice& row = state.ledger->devices[device];
  ++row.refused_allocations;
  row.last_refused_bytes = bytes;
  row.largest_refused_bytes = std::max(row.largest_refused_bytes, bytes);
  row.used_at_refusal_bytes =
      state.share ? state.share->used(static_cast<int>(row.card), state.card.context_bytes)
                  : row.used_bytes;
  state.ledger->launches_at_refusal = launches_of(*state.ledger);
}

bool try_charge(State& state, int device, Charge kind, std::uint64_t bytes) {
  LedgerDevice& row = state.ledger->devices[device];
  if (!has_room(state, row, bytes)) return false;
  raise(row.used_bytes, row.peak_used_bytes, bytes);
  if (kind == Charge::malloc_memory) raise(row.malloc_bytes, row.peak_malloc_bytes, bytes);
  if (kind == Charge::virtual_memory) raise(row.virtual_bytes, row.peak_virtual_bytes, bytes);
  ++row.allocations;
  state.ledger->last_allocation = ledger_now();
  return true;
}

void discharge(State& state, int device, Charge kind, std::uint64_t bytes) {
  LedgerDevice& row = state.ledger->devices[device];
  row.used_bytes -= bytes;
  if (state.share) state.share->give(static_cast<int>(row.card), bytes);
  (kind == Charge::malloc_memory ? row.malloc_bytes : row.virtual_bytes) -= bytes;
  ++row.frees;
}

MemoryResult no_host_memory(State& state, std::uint64_t bytes, MemoryResult result) {
  ++state.ledger->host_refusals;
  state.ledger->last_host_refused_bytes = bytes;
  return result;
}

namespace {

// The driver may put the ends of several into one page.
void note_end_in_page(State& s, Range& range) {
  range.ends_in_page = true;
  if (++s.memory.end_in_page[range.device] > 1) ++s.ledger->shared_page_allocations;
}

MemoryResult take_device(int device, std::uint64_t bytes, std::uint64_t size, void** out) {
  auto [s, lock] = LockedState{};
  if (!charge(s, device, Charge::malloc_memory, size)) return MemoryResult::out_of_memory;
  const auto base = s.memory.addresses.take(size + guard(kPage), kPage);
  if (!base) {
    discharge(s, device, Charge::malloc_memory, size);
    return no_host_memory(s, size, MemoryResult::no_address_space);
  }
  Range& range = add_range(s, base, MemoryKind::device, device, size);
  if (size <= kKeptBytes && open_pages(base, size)) range.kept = std::make_unique<KeptBytes>();
  if (bytes != size) note_end_in_page(s, range);
  *out = reinterpret_cast<void*>(base);
  return MemoryResult::ok;
}

}  // namespace

MemoryResult allocate_device(int device, std::uint64_t bytes, void** out) {
  if (!out) return MemoryResult::invalid_value;
  if (bytes > (1ull << 60))
    bytes = 1ull << 60;  // keeps the rounding from wrapping; refused all the same
  const auto size = round_up(std::max<std::uint64_t>(bytes, 1), kPage);
  const auto result = take_device(device, bytes, size, out);
  if (result == MemoryResult::out_of_memory) enter_out_of_memory(size);
  return result;
}

MemoryResult open_memory_of_another(int device, std::uint64_t bytes, void** out) {
  auto [s, lock] = LockedState{};
  const auto size = round_up(std::max<std::uint64_t>(bytes, 1), kPage);
  const auto base = s.memory.addresses.take(size + guard(kPage), kPage);
  if (!base) return no_host_memory(s, size, MemoryResult::no_address_space);
  add_range(s, base, MemoryKind::device, device, size).is_of_another = true;
  *out = reinterpret_cast<void*>(base);
  return MemoryResult::ok;
}

MemoryResult allocate_managed(int device, std::uint64_t bytes, void** out) {
  auto [s, lock] = LockedState{};
  const auto size = round_up(std::max<std::uint64_t>(bytes, 1), kHostPage);
  void* at = map_host(size);
  if (!at) return no_host_memory(s, size, MemoryResult::out_of_memory);
  add_range(s, reinterpret_cast<std::uint64_t>(at), MemoryKind::managed, device, size);
  raise(s.ledger->managed_bytes, s.ledger->peak_managed_bytes, size);
  *out = at;
  return MemoryResult::ok;
}

MemoryResult allocate_pinned(std::uint64_t bytes, void** out) {
  if (!out) return MemoryResult::invalid_value;
  auto [s, lock] = LockedState{};
  const auto size = round_up(std::max<std::uint64_t>(bytes, 1), kHostPage);
  void* at = map_host(size);
  if (!at) return no_host_memory(s, size, MemoryResult::out_of_memory);
  add_range(s, reinterpret_cast<std::uint64_t>(at), MemoryKind::pinned, -1, size);
  raise(s.ledger->pinned_bytes, s.ledger->peak_pinned_bytes, size);
  *out = at;
  return MemoryResult::ok;
}

MemoryResult register_host(void* base, std::uint64_t bytes) {
  auto [s, lock] = LockedState{};
  if (!base || !bytes || find_range(s, base) != s.memory.ranges.end())
    return MemoryResult::invalid_value;
  add_range(s, reinterpret_cast<std::uint64_t>(base), MemoryKind::registered, -1, bytes);
  raise(s.ledger->pinned_bytes, s.ledger->peak_pinned_bytes, bytes);
  return MemoryResult::ok;
}

MemoryResult unregister_host(void* base) {
  auto [s, lock] = LockedState{};
  auto found = s.memory.ranges.find(reinterpret_cast<std::uint64_t>(base));
  if (found == s.memory.ranges.end() || found->second.kind != MemoryKind::registered) {
    return MemoryResult::invalid_value;
  }
  s.ledger->pinned_bytes -= found->second.bytes;
  s.memory.ranges.erase(found);
  return MemoryResult::ok;
}

MemoryResult release(void* base, bool pinned) {
  auto [s, lock] = LockedState{};
  const auto at = reinterpret_cast<std::uint64_t>(base);
  auto found = s.memory.ranges.find(at);
  if (found == s.memory.ranges.end()) return MemoryResult::invalid_value;
  const Range& range = found->second;
  if (pinned != (range.kind == MemoryKind::pinned)) return MemoryResult::invalid_value;
  if (range.pool) {
    give_back_piece(s, at, range);
  } else if (range.is_of_another) {
    s.memory.addresses.give_back(at, range.bytes + guard(kPage));
  } else if (range.kind == MemoryKind::device) {
    discharge(s, range.device, Charge::malloc_memory, range.bytes);
    if (range.kept) close_pages(at, range.bytes);
    if (range.ends_in_page) --s.memory.end_in_page[range.device];
    s.memory.addresses.give_back(at, range.bytes + guard(kPage));
  } else if (range.kind == MemoryKind::managed || range.kind == MemoryKind::pinned) {
    (pinned ? s.ledger->pinned_bytes : s.ledger->managed_bytes) -= range.bytes;
    munmap(base, range.bytes + guard(kHostPage));
  } else {
    return MemoryResult::invalid_value;
  }
  s.memory.ranges.erase(found);
  return MemoryResult::ok;
}

MemoryPlace find_place(const void* address) {
  auto [s, lock] = LockedState{};
  if (auto range = find_range(s, address); range != s.memory.ranges.end()) {
    return {range->second.kind,  range->second.device, range->first,
            range->second.bytes, range->second.handle, range->second.ordinal};
  }
  const auto at = reinterpret_cast<std::uint64_t>(address);
  auto next = s.memory.reservations.upper_bound(at);
  if (next != s.memory.reservations.begin()) {
    const auto [base, bytes] = *std::prev(next);
    if (at - base < bytes) return {MemoryKind::reservation, 0, base, bytes, 0, 0};
  }
  return {MemoryKind::unknown, -1, 0, 0, 0, 0};
}

void memory_info(int device, std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  auto [s, lock] = LockedState{};
  const LedgerDevice& row = s.ledger->devices[device];
  *total_bytes = row.total_bytes;
  const auto used = s.share ? s.share->used(static_cast<int>(row.card), s.card.context_bytes)
                            : row.used_bytes + s.card.context_bytes;
  *free_bytes = row.total_bytes - std::min(row.total_bytes, used);
}

}  // namespace peakbench::emulator
