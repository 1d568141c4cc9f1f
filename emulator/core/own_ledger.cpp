#include "core/own_ledger.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/callers.h"
#include "core/facts.h"
#include "core/state.h"
#include "core/symbols.h"
#include "interpreter/python_api.h"

namespace peakbench::emulator {

LedgerPlace place_now(const char* function, PythonsLock lock) {
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s", function);
  place.first = ledger_now();
  place.kernel_launches = ledger().kernel_launches;
  if (lock == PythonsLock::may_be_waited_for || interpreter::holds_python())
    find_python_place(place.place, sizeof place.place);
  return place;
}

namespace {

std::mutex& places_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Of the first so many.
LedgerPlace* find_row(LedgerPlaces& places, std::uint32_t count, const LedgerPlace& place) {
  return std::find_if(places.rows, places.rows + count, [&](const LedgerPlace& known) {
    return std::strcmp(known.function, place.function) == 0 &&
           std::strcmp(known.place, place.place) == 0;
  });
}

}  // namespace

void enter_place(LedgerPlaces& places, const LedgerPlace& place) {
  std::lock_guard lock(places_mutex());
  auto* const end = places.rows + places.count;
  auto* row = find_row(places, places.count, place);
  if (row == end) {
    if (places.count == kLedgerPlaces) {
      if (places.beyond.calls++ == 0) places.beyond.first = place.first;
      return;
    }
    *row = place;
    ++places.count;
  }
  places.last = static_cast<std::uint32_t>(row - places.rows);
  ++row->calls;
  row->largest_bytes = std::max(row->largest_bytes, place.largest_bytes);
}

void complete_last_place(LedgerPlaces& places) {
  char line[sizeof LedgerPlace::place];
  find_python_place(line, sizeof line);  // which may wait: before the lock is taken
  std::lock_guard lock(places_mutex());
  if (places.last >= places.count || places.rows[places.last].place[0] || !line[0]) return;
  auto& row = places.rows[places.last];
  std::memcpy(row.place, line, sizeof line);
  auto* const known = find_row(places, places.last, row);
  if (known == &row) return;
  // Only the newest row can have been without a line until now: nothing comes after it.
  known->calls += row.calls;
  known->largest_bytes = std::max(known->largest_bytes, row.largest_bytes);
  row = places.rows[--places.count];
  places.last = static_cast<std::uint32_t>(known - places.rows);
}

void free_memory_is_read(const char* function, const void* caller) {
  if (lies_in(caller, "libc10_cuda.so")) return;
  enter_place(ledger().free_memory_reads, place_now(function, PythonsLock::may_be_waited_for));
}

void enter_out_of_memory(std::uint64_t bytes) {
  const Caller& caller = find_caller();
  // PyTorch's allocator asks with its own lock held.
  auto place = place_now(caller.operation[0] ? caller.operation : caller.function,
                         PythonsLock::is_held_or_not);
  place.largest_bytes = bytes;
  enter_place(ledger().out_of_memory, place);
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_says_free_memory(const char* function) {
  using namespace peakbench::emulator;
  if (machine_state() == MachineState::ready) free_memory_is_read(function, nullptr);
}

namespace peakbench::emulator {
namespace {

struct Rank {
  std::int32_t rank = -1, ranks = 0;
};

std::mutex mutex;
Rank of_group;  // torch.distributed's

void put(Ledger& ledger, const Rank& own) {
  for (std::uint32_t i = 0; i < ledger.device_count; ++i) {
    ledger.devices[i].rank = own.rank;
    ledger.devices[i].ranks = own.ranks;
  }
}

}  // namespace

std::int32_t from_environment(const char* variable, std::int32_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  std::int32_t number = 0;
  const auto* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, number);
  return error == std::errc{} && read == end ? number : otherwise;
}

void enter_rank(Ledger& ledger) {
  const std::lock_guard lock(mutex);
  if (of_group.rank >= 0) return put(ledger, of_group);
  const auto rank = from_environment("RANK", -1);
  put(ledger, {rank, rank < 0 ? 0 : from_environment("WORLD_SIZE", 0)});
}

void enter_communicator_rank(int device, int rank, int ranks) {
  LedgerDevice& row = state().ledger->devices[device];  // begins a ledger, which takes the lock
  const std::lock_guard lock(mutex);
  row.communicator_ranks = std::max(row.communicator_ranks, ranks);
  if (of_group.rank >= 0 || row.ranks >= ranks) return;
  row.rank = rank;
  row.ranks = ranks;
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_is_rank(int rank, int ranks) {
  using namespace peakbench::emulator;
  const std::lock_guard lock(mutex);
  of_group = {rank, ranks};
  if (machine_state_made()) put(*state().ledger, of_group);
}

extern "C" void peakbench_emulator_is_alone(int rank, int ranks) {
  using namespace peakbench::emulator;
  peakbench_emulator_is_rank(rank, ranks);
  enter(Fact::nccl_alone, {.rank = rank, .ranks = ranks});
}
