// PyTorch's own snapshot and statistics of this process against the trace that Peakbench records of
// it: the same events, the same blocks, the same peaks.
//
//   native_snapshot_test DEVICE [expandable_segments]     DEVICE: emulated:h100-80gb (under
//   peakbench emulate), cuda:0
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "recording/device.h"
#include "recording/recorder.h"
#include "trace/lifetimes.h"
#include "trace/summary.h"

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
namespace trace = peakbench::trace;
using Action = c10::CachingDeviceAllocator::TraceEntry::Action;

std::string device_name;
bool expandable_segments = false;

void allocate_pinned() {
  const auto options = at::TensorOptions().dtype(at::kFloat).pinned_memory(true);
  const auto first = at::empty({1000}, options);
  const auto second = at::empty({3}, options);
}

struct Recorded {
  trace::Trace ours;
  c10::CachingDeviceAllocator::DeviceStats stats;
  allocator::SnapshotInfo native;
};

at::Tensor bytes_on_card(std::int64_t bytes) {
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(at::kCUDA));
}

// Blocks of every kind: small and large ones, freed in another order, used by another stream,
// split, given back, and one that does not fit.
void allocate_and_free() {
  std::mt19937 random(7);
  std::vector<at::Tensor> alive;
  const auto other_stream = c10::cuda::getStreamFromPool();
  for (int i = 0; i < 3000; ++i) {
    if (alive.size() > 40 || (!alive.empty() && random() % 3 == 0)) {
      const auto victim = random() % alive.size();
      if (random() % 8 == 0) alive[victim].record_stream(other_stream);
      std::swap(alive[victim], alive.back());
      alive.pop_back();
    } else {
      const auto magnitude = random() % 25;
      alive.push_back(bytes_on_card(1 + static_cast<std::int64_t>(random() % (2u << magnitude))));
    }
    if (i == 1500) allocator::emptyCache();
  }
  EXPECT_THROW(bytes_on_card(std::int64_t{1} << 45), c10::OutOfMemoryError);
}

// One process, one recording: tracing cannot be taken out again.
const Recorded& recorded() {
  static const Recorded result = [] {
    peakbench::recording::DeviceRequest request;
    request.device = peakbench::records::device_from(device_name);
    if (expandable_segments) request.allocator = "expandable_segments:True";
    auto device = peakbench::recording::make_device(request);
    // Allocators point at it until the process ends.
    auto* recorder = new peakbench::recording::Recorder(device_name, device->torch_device().str(),
                                                        device->emulated());
    allocator::recordHistory(true, nullptr, 1 << 20, allocator::RecordContext::NEVER, true, {});
    device->trace(*recorder);
    recorder->set_phase(trace::Phase::kForward, 0);
    allocate_and_free();
    allocate_pinned();
    device->synchronise();
    Recorded end;
    end.native = allocator::snapshot();
    end.stats = allocator::getDeviceStats(0);
    end.ours = recorder->take();
    device.release();  // NOLINT: its tracer outlives the test
    return end;
  }();
  return result;
}

trace::EventKind kind_of(Action action) {
  switch (action) {
    case Action::ALLOC:
      return trace::EventKind::kAlloc;
    case Action::FREE_REQUESTED:
      return trace::EventKind::kFreeRequested;
    case Action::FREE_COMPLETED:
      return trace::EventKind::kFree;
    case Action::SEGMENT_ALLOC:
      return trace::EventKind::kSegmentAlloc;
    case Action::SEGMENT_FREE:
      return trace::EventKind::kSegmentFree;
    case Action::SEGMENT_MAP:
      return trace::EventKind::kSegmentMap;
    case Action::SEGMENT_UNMAP:
      return trace::EventKind::kSegmentUnmap;
    default:
      return trace::EventKind::kOutOfMemory;
  }
}

TEST(NativeSnapshot, HasTheSameEventsInTheSameOrder) {
  std::vector<c10::CachingDeviceAllocator::TraceEntry> theirs;
  for (const auto& entry : recorded().native.device_traces.at(0))
    if (entry.action_ != Action::SNAPSHOT) theirs.push_back(entry);
  std::vector<trace::Event> ours;
  for (const auto& event : recorded().ours.events)
    if (event.space == 0) ours.push_back(event);
  ASSERT_EQ(ours.size(), theirs.size());
  ASSERT_GT(ours.size(), 4000u);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_EQ(ours[i].kind, kind_of(theirs[i].action_)) << "event " << i;
    ASSERT_EQ(ours[i].address, theirs[i].addr_) << "event " << i;
    ASSERT_EQ(ours[i].requested_bytes, static_cast<std::int64_t>(theirs[i].size_)) << "event " << i;
  }
}

TEST(NativeSnapshot, HasTheSameBlocksAtTheEnd) {
  struct Block {
    std::int64_t requested_bytes, block_bytes;
    bool operator==(const Block&) const = default;
  };
  std::map<std::uint64_t, Block> ours, theirs;
  for (const auto& life : trace::lifetimes(recorded().ours)) {
    const auto& event = recorded().ours.events[life.first];
    if (event.space == 0 && life.last == recorded().ours.events.size())
      ours[event.address] = {event.requested_bytes, event.block_bytes};
  }
  for (const auto& segment : recorded().native.segments) {
    auto address = segment.address;
    for (const auto& block : segment.blocks) {
      if (block.allocated)
        theirs[address] = {static_cast<std::int64_t>(block.requested_size),
                           static_cast<std::int64_t>(block.size)};
      address += block.size;
    }
  }
  EXPECT_EQ(ours, theirs);
}

TEST(NativeStatistics, HaveTheSamePeaks) {
  const auto memory = trace::summarise(recorded().ours);
  EXPECT_EQ(memory.peak_allocated_bytes, recorded().stats.allocated_bytes[0].peak);
  EXPECT_EQ(memory.peak_requested_bytes, recorded().stats.requested_bytes[0].peak);
  EXPECT_EQ(memory.peak_reserved_bytes.value(), recorded().stats.reserved_bytes[0].peak);
  EXPECT_EQ(recorded().stats.num_ooms, 1);
}

TEST(NativeStatistics, SayWhatWasFreeWhenMemoryRanOut) {
  const auto& events = recorded().ours.events;
  const auto failure =
      std::ranges::find(events, trace::EventKind::kOutOfMemory, &trace::Event::kind);
  ASSERT_NE(failure, events.end());
  EXPECT_GT(failure->address, 0u);
  EXPECT_EQ(failure->requested_bytes % (std::int64_t{1} << 45), 0);
}

// Blocks of a power of two, as the host allocator makes them.
TEST(PinnedMemory, IsASpaceOfItsOwn) {
  const auto memory = trace::summarise(recorded().ours);
  ASSERT_TRUE(memory.spaces.contains("pinned"));
  EXPECT_EQ(memory.spaces.at("pinned").peak_requested_bytes, 4000 + 12);
  EXPECT_EQ(memory.spaces.at("pinned").peak_allocated_bytes, 4096 + 16);
}

}  // namespace

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  if (count < 2) {
    std::fprintf(stderr, "usage: native_snapshot_test DEVICE [expandable_segments]\n");
    return 2;
  }
  device_name = words[1];
  expandable_segments = count > 2;
  return RUN_ALL_TESTS();
}
