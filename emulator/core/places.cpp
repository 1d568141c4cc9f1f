#include "core/places.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "core/python_place.h"
#include "core/state.h"
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

}  // namespace peakbench::emulator
