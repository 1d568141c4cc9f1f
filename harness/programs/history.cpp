#include "programs/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "programs/snapshot_work.h"
#include "trace/lifetimes.h"
#include "trace/trace_file.h"

namespace peakbench::programs {
namespace {

using trace::Event;
using trace::EventKind;

constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t kMostLevel = std::int64_t{1} << 50;  // as run.json can hold it
constexpr std::int64_t kMostTime = std::int64_t{1} << 52U;  // microseconds

// Streams by small numbers, of all devices.
class Streams {
 public:
  std::int32_t number(std::int64_t stream) {
    return numbers_.try_emplace(stream, static_cast<std::int32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::int64_t, std::int32_t> numbers_;
};

// The events of one device.
class DeviceHistory {
 public:
  DeviceHistory(const Snapshot& snapshot, std::size_t device, std::int16_t space, Streams& streams)
      : entries_(device < snapshot.histories.size() ? snapshot.histories[device] : kNoEntries),
        blocks_(snapshot.most_split_bytes, snapshot.divisions),
        space_(space),
        streams_(streams) {
    completes_ = std::ranges::any_of(
        entries_, [](const SnapshotEntry& entry) { return entry.kind == EventKind::kFree; });
    for (const auto& segment : snapshot.segments)
      if (segment.device == static_cast<std::int64_t>(device)) segments_.push_back(&segment);
  }

  void build() {
    undo_segments();
    find_earlier();
    find_sizes();
    const auto segments = blocks_.segments.segments();
    events.reserve(entries_.size() + earlier_.size() + segments.size());
    for (const auto& segment : segments) begin_segment(segment);
    for (const auto& [address, block] : earlier_) begin_block(block);
    for (std::size_t i = 0; i < entries_.size(); ++i) take(entries_[i], i);
  }

  std::vector<Event> events;  // their times in microseconds, never decreasing; or kBeginning
  std::int64_t peak_bytes = 0, earlier_bytes = 0, lost_frees = 0, above_reserved = 0;
  std::size_t earlier() const { return earlier_.size(); }
  std::size_t recorded() const { return entries_.size(); }
  std::optional<records::OutOfMemory> out_of_memory;

 private:
  inline static const std::vector<SnapshotEntry> kNoEntries;

  static bool begins_segment(EventKind kind) {
    return kind == EventKind::kSegmentAlloc || kind == EventKind::kSegmentMap;
  }

  // From the segments of the end back to those of the beginning.
  void undo_segments() {
    for (const auto* segment : segments_)
      blocks_.segments.add({segment->address, segment->bytes, 0, segment->expandable});
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      const auto kind = entry->kind;
      if (begins_segment(kind))
        blocks_.segments.remove(entry->address, entry->bytes);
      else if (kind == EventKind::kSegmentFree || kind == EventKind::kSegmentUnmap)
        blocks_.segments.add({entry->address, entry->bytes, 0, kind == EventKind::kSegmentUnmap});
    }
  }

  // What is freed and was never allocated, and what is alive at the end so.
  void find_earlier() {
    std::unordered_set<std::uint64_t> known;
    for (const auto& entry : entries_) {
      const bool is_free =
          entry.kind == EventKind::kFreeRequested || entry.kind == EventKind::kFree;
      if (!is_free && entry.kind != EventKind::kAlloc) continue;
      if (known.insert(entry.address).second && is_free)
        earlier_.try_emplace(
            entry.address,
            SnapshotBlock{entry.address, blocks_.rounded(entry.bytes), entry.bytes, trace::kNone});
    }
    for (const auto* segment : segments_)
      for (const auto& block : segment->blocks)
        if (known.count(block.address) == 0) earlier_.try_emplace(block.address, block);
  }

  // Of what is alive at the end, as the snapshot says.
  void find_sizes() {
    std::unordered_map<std::uint64_t, std::int64_t> alive;
    for (const auto* segment : segments_)
      for (const auto& block : segment->blocks) alive[block.address] = block.bytes;
    for (auto i = entries_.size(); i > 0 && !alive.empty(); --i) {
      const auto& entry = entries_[i - 1];
      if (entry.kind != EventKind::kAlloc && entry.kind != EventKind::kFree) continue;
      const auto found = alive.find(entry.address);
      if (found == alive.end()) continue;
      if (entry.kind == EventKind::kAlloc && found->second >= entry.bytes)
        sizes_[i - 1] = found->second;
      alive.erase(found);
    }
  }

  void begin_segment(const trace::Segment& segment) {
    Event event;
    event.kind = segment.expandable ? EventKind::kSegmentMap : EventKind::kSegmentAlloc;
    event.address = segment.address;
    event.requested_bytes = event.block_bytes = segment.bytes;
    event.space = space_;
    event.time_ns = kBeginning;
    events.push_back(event);
    reserve(segment.bytes);
  }

  void begin_block(const SnapshotBlock& block) {
    Event event;
    event.address = block.address;
    event.requested_bytes = block.requested_bytes;
    event.block_bytes = block.bytes;
    event.stack = block.stack;
    event.space = space_;
    event.time_ns = kBeginning;
    events.push_back(event);
    blocks_.place(block.address, block.bytes);
    earlier_bytes += block.bytes;
    count(block.bytes);
    allocated(block.address, block.bytes);
  }

  void take(const SnapshotEntry& entry, std::size_t number) {
    Event event;
    event.kind = entry.kind;
    event.address = entry.address;
    event.requested_bytes = entry.bytes;
    event.stack = entry.stack;
    event.range = entry.label;
    if (entry.work == NativeWork::kBackward) event.thread = kEngineThread;
    if (entry.work == NativeWork::kWorkspace) event.op = kWorkspaceOperator;
    event.space = space_;
    event.stream = streams_.number(entry.stream);
    time_us_ = std::max(time_us_, entry.time_us);
    switch (entry.kind) {
      case EventKind::kAlloc:
        return allocate(event, number);
      case EventKind::kFreeRequested:
        return free_requested(event);
      case EventKind::kFree:
        return free_completed(event);
      case EventKind::kOutOfMemory:
        return ran_out(event);
      default:
        return segment(event);
    }
  }

  void allocate(Event& event, std::size_t number) {
    if (event.address == 0) return;
    if (alive_.count(event.address) != 0) {  // its free is lost
      ++lost_frees;
      auto freed = event;
      freed.stack = trace::kNone;
      free_completed(freed);
    }
    event.block_bytes = blocks_.allocate(event.address, event.requested_bytes);
    if (const auto known = sizes_.find(number); known != sizes_.end()) {
      event.block_bytes = known->second;
      blocks_.place(event.address, known->second);
    }
    count(event.block_bytes);
    add(event);
    allocated(event.address, event.block_bytes);
    out_of_memory.reset();
  }

  void free_requested(Event& event) {
    const auto found = alive_.find(event.address);
    if (found == alive_.end() || found->second.requested) return;
    if (!completes_) return free_completed(event);
    level_ -= found->second.bytes;
    found->second.requested = true;
    add(event);
  }

  void free_completed(Event& event) {
    const auto found = alive_.find(event.address);
    if (found == alive_.end()) return;
    event.kind = EventKind::kFree;
    if (!found->second.requested) level_ -= found->second.bytes;
    alive_.erase(found);
    blocks_.release(event.address);
    add(event);
  }

  void ran_out(Event& event) {
    records::OutOfMemory facts;
    facts.requested_bytes = event.requested_bytes;
    facts.allocated_bytes = level_;
    facts.reserved_bytes = reserved_;
    const auto free = std::min<std::uint64_t>(event.address, kMostBytes);
    facts.limit_bytes = std::max<std::int64_t>(reserved_, 0) + static_cast<std::int64_t>(free);
    facts.phase = trace::to_string(trace::Phase::kBuild);
    out_of_memory = facts;
    add(event);
  }

  void segment(Event& event) {
    event.block_bytes = event.requested_bytes;
    if (begins_segment(event.kind)) {
      blocks_.segments.add(
          {event.address, event.block_bytes, 0, event.kind == EventKind::kSegmentMap});
      reserve(event.block_bytes);
    } else {
      blocks_.segments.remove(event.address, event.block_bytes);
      reserved_ -= event.block_bytes;
    }
    count(event.block_bytes);
    add(event);
  }

  void add(Event& event) {
    event.time_ns = time_us_;
    events.push_back(event);
  }

  void allocated(std::uint64_t address, std::int64_t bytes) {
    alive_[address] = {bytes, false};
    level_ += bytes;
    if (level_ > kMostLevel) too_much();
    peak_bytes = std::max(peak_bytes, level_);
    above_reserved = std::max(above_reserved, level_ - reserved_);
  }

  void reserve(std::int64_t bytes) {
    reserved_ += bytes;
    if (reserved_ > kMostLevel) too_much();
  }

  [[noreturn]] static void too_much() {
    throw std::invalid_argument("has sizes that add up to more than any device has: it is damaged");
  }

  // Of all sizes, as a reader of traces holds them.
  void count(std::int64_t bytes) {
    if (bytes > (kMostBytes - counted_) / 2) too_much();
    counted_ += 2 * bytes;
  }

  struct Alive {
    std::int64_t bytes = 0;
    bool requested = false;  // its free
  };

  const std::vector<SnapshotEntry>& entries_;
  std::vector<const SnapshotSegment*> segments_;
  SnapshotBlocks blocks_;
  bool completes_ = false;  // else skip_actions left out that frees were completed
  std::int16_t space_;
  Streams& streams_;
  std::map<std::uint64_t, SnapshotBlock> earlier_;
  std::unordered_map<std::size_t, std::int64_t> sizes_;  // of blocks, by the entry's number
  std::unordered_map<std::uint64_t, Alive> alive_;
  std::int64_t level_ = 0, reserved_ = 0, counted_ = 0, time_us_ = 0;
};

// Of several devices in the order of their times; of one, moved, as there may be many.
std::vector<Event> joined(std::vector<DeviceHistory>& devices) {
  auto events = std::move(devices.front().events);
  for (std::size_t i = 1; i < devices.size(); ++i)
    events.insert(events.end(), devices[i].events.begin(), devices[i].events.end());
  if (devices.size() > 1) std::ranges::stable_sort(events, {}, &Event::time_ns);
  return events;
}

// From microseconds of a clock, or kBeginning, to nanoseconds since the first event.
void count_time(std::vector<Event>& events) {
  const auto first =
      std::ranges::find_if(events, [](const Event& event) { return event.time_ns != kBeginning; });
  const auto begin = first == events.end() ? 0 : first->time_ns;
  for (auto& event : events) {
    const auto since = event.time_ns == kBeginning ? 0
                                                   : static_cast<std::uint64_t>(event.time_ns) -
                                                         static_cast<std::uint64_t>(begin);
    event.time_ns = static_cast<std::int64_t>(std::min<std::uint64_t>(since, kMostTime)) * 1000;
  }
}

// Those that anything is known of.
std::set<std::size_t> devices_of(const Snapshot& snapshot) {
  std::set<std::size_t> known;
  for (std::size_t i = 0; i < snapshot.histories.size(); ++i)
    if (!snapshot.histories[i].empty()) known.insert(i);
  for (const auto& segment : snapshot.segments)
    known.insert(static_cast<std::size_t>(segment.device));
  return known;
}

// Of the last failure, which ended the program.
void say_phase(const trace::Trace& trace, records::OutOfMemory& facts) {
  const auto failed =
      std::find_if(trace.events.rbegin(), trace.events.rend(),
                   [](const Event& event) { return event.kind == EventKind::kOutOfMemory; });
  if (failed == trace.events.rend()) return;
  facts.phase = trace::to_string(failed->phase);
  facts.step = failed->step;
}

}  // namespace

History history_of(Snapshot snapshot) {
  History history;
  const auto numbers = devices_of(snapshot);
  Streams streams;
  std::vector<DeviceHistory> devices;
  std::int64_t largest = 0;
  auto& trace = history.trace;
  for (const auto number : numbers) {
    const auto space = devices.size();
    auto& device =
        devices.emplace_back(snapshot, number, static_cast<std::int16_t>(space), streams);
    device.build();
    trace.spaces.push_back(fmt::format("cuda:{}", number));
    history.entries += static_cast<std::int64_t>(device.recorded());
    history.earlier += static_cast<std::int64_t>(device.earlier());
    history.earlier_bytes += device.earlier_bytes;
    history.lost_frees += device.lost_frees;
    history.above_reserved = std::max(history.above_reserved, device.above_reserved);
    if (device.out_of_memory) history.out_of_memory = device.out_of_memory;
    if (device.peak_bytes <= largest) continue;
    largest = device.peak_bytes;
    trace.own_space = static_cast<int>(space);
  }
  history.has_state_only =
      history.earlier > 0 && history.entries <= static_cast<std::int64_t>(devices.size());
  if (largest == 0) throw std::invalid_argument("holds no allocation: nothing was on a device");
  trace.device = trace.spaces[static_cast<std::size_t>(trace.own_space)];
  trace.counts_build = true;
  trace.events = joined(devices);
  trace.frames = std::move(snapshot.frames);
  trace.files = std::move(snapshot.files);
  trace.functions = std::move(snapshot.functions);
  trace.operators = {"cublas workspace"};
  history.phases = take_annotations(snapshot, trace);
  if (history.out_of_memory && !trace.scopes.empty()) say_phase(trace, *history.out_of_memory);
  count_time(trace.events);
  if (const auto why = trace::why_not_readable(trace); !why.empty())
    throw std::invalid_argument(fmt::format("has {}: it is damaged", why));
  return history;
}

}  // namespace peakbench::programs
