#include "trace/segments.h"

#include <algorithm>
#include <iterator>

#include "trace/maxima.h"

namespace peakbench::trace {
namespace {

std::uint64_t end_of(const Segment& segment) {
  return segment.address + static_cast<std::uint64_t>(segment.bytes);
}

// Heaps grow in pages; stretches closer than this are one.
constexpr std::uint64_t kPage = 4096, kNear = 2 << 20;

std::uint64_t page_begin(std::uint64_t address) { return address / kPage * kPage; }
std::uint64_t page_end(std::uint64_t address) { return page_begin(address + kPage - 1); }

}  // namespace

void SegmentMap::take(const Event& event) {
  switch (event.kind) {
    case EventKind::kSegmentAlloc:
    case EventKind::kSegmentMap:
      add({event.address, event.block_bytes, event.stream, event.kind == EventKind::kSegmentMap});
      break;
    case EventKind::kSegmentFree:
    case EventKind::kSegmentUnmap:
      if (contains(event.address, event.block_bytes)) remove(event.address, event.block_bytes);
      break;
    default:
      break;
  }
}

void SegmentMap::add(Segment segment) {
  const auto joins = [&](const Segment& other) {
    return segment.expandable && other.expandable && other.stream == segment.stream;
  };
  const auto next = by_address_.find(end_of(segment));
  if (next != by_address_.end() && joins(next->second)) {
    segment.bytes += next->second.bytes;
    by_address_.erase(next);
  }
  const auto after = by_address_.lower_bound(segment.address);
  if (after != by_address_.begin()) {
    auto& before = std::prev(after)->second;
    if (end_of(before) == segment.address && joins(before)) {
      before.bytes += segment.bytes;
      return;
    }
  }
  by_address_[segment.address] = segment;
}

void SegmentMap::remove(std::uint64_t address, std::int64_t bytes) {
  auto at = by_address_.upper_bound(address);
  if (at == by_address_.begin()) return;
  --at;
  const auto whole = at->second;
  if (address >= end_of(whole)) return;
  const auto end = std::min(end_of(whole), address + static_cast<std::uint64_t>(bytes));
  by_address_.erase(at);
  if (address > whole.address)
    by_address_[whole.address] = {whole.address, static_cast<std::int64_t>(address - whole.address),
                                  whole.stream, whole.expandable};
  if (end < end_of(whole))
    by_address_[end] = {end, static_cast<std::int64_t>(end_of(whole) - end), whole.stream,
                        whole.expandable};
}

const Segment* SegmentMap::at(std::uint64_t address) const {
  const auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return nullptr;
  const auto& segment = std::prev(after)->second;
  return address < end_of(segment) ? &segment : nullptr;
}

bool SegmentMap::contains(std::uint64_t address, std::int64_t bytes) const {
  const auto after = by_address_.upper_bound(address);
  return after != by_address_.begin() &&
         address + static_cast<std::uint64_t>(bytes) <= end_of(std::prev(after)->second);
}

std::vector<Segment> SegmentMap::segments() const {
  std::vector<Segment> all;
  for (const auto& [address, segment] : by_address_) all.push_back(segment);
  return all;
}

std::vector<Segment> synthesised_segments(const Trace& trace,
                                          const std::vector<Lifetime>& lifetimes, int space) {
  SegmentMap recorded;
  std::vector<Segment> outside;
  auto lifetime = lifetimes.begin();
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    const bool begins = lifetime != lifetimes.end() && lifetime->first == i;
    if (begins) ++lifetime;
    if (event.space != space) continue;
    recorded.take(event);
    if (begins && !recorded.contains(event.address, event.block_bytes))
      outside.push_back({event.address, event.block_bytes, 0, false});
  }
  std::sort(outside.begin(), outside.end(),
            [](const Segment& a, const Segment& b) { return a.address < b.address; });
  std::vector<Segment> stretches;
  for (const auto& block : outside) {
    const auto begin = page_begin(block.address), end = page_end(end_of(block));
    if (stretches.empty() || begin > end_of(stretches.back()) + kNear) {
      stretches.push_back({begin, static_cast<std::int64_t>(end - begin), 0, false});
    } else {
      auto& last = stretches.back();
      last.bytes = static_cast<std::int64_t>(std::max(end, end_of(last)) - last.address);
    }
  }
  return stretches;
}

}  // namespace peakbench::trace
