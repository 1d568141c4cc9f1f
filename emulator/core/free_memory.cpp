#include "core/free_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/callers.h"
#include "core/python_place.h"
#include "core/pytorch.h"

namespace peakbench::emulator {
namespace {

std::mutex places_mutex;

void enter(LedgerPlaces& places, const LedgerPlace& place) {
  std::lock_guard lock(places_mutex);
  auto* const end = places.rows + places.count;
  auto* row = std::find_if(places.rows, end, [&](const LedgerPlace& known) {
    return std::strcmp(known.function, place.function) == 0 &&
           std::strcmp(known.place, place.place) == 0;
  });
  if (row == end) {
    if (places.count == kLedgerPlaces) {
      ++places.dropped;
      return;
    }
    *row = place;
    ++places.count;
  }
  places.last = static_cast<std::uint32_t>(row - places.rows);
  ++row->calls;
  row->largest_bytes = std::max(row->largest_bytes, place.largest_bytes);
}

}  // namespace

void free_memory_is_read(const char* function, const void* caller) {
  if (lies_in(caller, "libc10_cuda.so")) return;
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s", function);
  place.kernel_launches = ledger().kernel_launches;
  find_python_place(place.place, sizeof place.place);
  enter(ledger().free_memory_reads, place);
}

void enter_out_of_memory(std::uint64_t bytes) {
  const Caller& caller = find_caller();
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s",
                caller.operation[0] ? caller.operation : caller.function);
  place.largest_bytes = bytes;
  place.kernel_launches = ledger().kernel_launches;
  // Whoever waits for Python's lock here may be waited for with it: PyTorch's allocator asks with
  // its own lock held.
  if (holds_python()) find_python_place(place.place, sizeof place.place);
  enter(ledger().out_of_memory, place);
}

}  // namespace peakbench::emulator
