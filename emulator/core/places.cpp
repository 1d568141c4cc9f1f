#include "core/places.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace peakbench::emulator {

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
