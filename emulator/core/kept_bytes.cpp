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

}  // namespace peakbench::emulator
