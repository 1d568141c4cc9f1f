#include "core/places.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/own_ledger.h"
#include "core/python_place.h"

namespace peakbench::emulator {

LedgerPlace place_now(const char* function, PythonsLock lock) {
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s", function);
  place.kernel_launches = ledger().kernel_launches;
  if (lock == PythonsLock::may_be_waited_for || holds_python())
    find_python_place(place.place, sizeof place.place);
  return place;
}

void enter_place(LedgerPlaces& places, const LedgerPlace& place) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
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

}  // namespace peakbench::emulator
