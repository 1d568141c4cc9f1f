#include "core/kept_bytes.h"

#include <algorithm>
#include <iterator>
#include <vector>

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

void KeptBytes::copy(std::uint64_t to, const KeptBytes* from, std::uint64_t from_offset,
                     std::uint64_t bytes) {
  struct Piece {
    std::uint64_t offset, bytes, when;
  };
  std::vector<Piece> pieces;  // gathered first: the two may be the same
  if (from) {
    auto run = from->runs_.upper_bound(from_offset);
    if (run != from->runs_.begin()) --run;
    for (; run != from->runs_.end() && run->first < from_offset + bytes; ++run) {
      const auto start = std::max(run->first, from_offset);
      const auto end = std::min(run->second.end, from_offset + bytes);
      if (start < end)
        pieces.push_back({to + (start - from_offset), end - start, run->second.when});
    }
  }
  forget(to, bytes);
  for (const Piece& piece : pieces) put(piece.offset, piece.bytes, piece.when);
}

}  // namespace peakbench::emulator
